"""Requests and replies, as clients of the REST API see them."""
