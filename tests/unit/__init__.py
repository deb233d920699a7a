"""Rules and values, without a server."""
