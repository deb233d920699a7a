"""Limits of HTTP, WebSocket and server-sent events."""
