"""Routers: copy the messages of topics to the targets of their routes."""
