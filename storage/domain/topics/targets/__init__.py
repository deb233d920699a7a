"""Targets of routes: queues, streams and topics, and spreads over several of them."""
