"""Requests: the addresses of replies, and waiting for them."""
