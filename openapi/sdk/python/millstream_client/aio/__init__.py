"""Asynchronous client."""
