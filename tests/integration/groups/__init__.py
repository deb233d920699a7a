"""Webhooks over real stores and real sockets."""
