"""Requests and replies over real stores."""
