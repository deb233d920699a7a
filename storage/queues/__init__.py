"""The queue engine: send, receive, settle, inspection and transfers."""
