"""Push: WebSocket and server-sent events."""
