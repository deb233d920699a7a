"""Requests and their replies."""
