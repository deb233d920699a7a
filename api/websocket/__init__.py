"""The WebSocket endpoint, its sessions and frames."""
