"""Conditions on messages."""
