"""Conditions on messages, and what the conditions of other systems become."""
