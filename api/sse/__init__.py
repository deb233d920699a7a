"""Server-sent events and JSON Lines."""
