"""Subscriptions of a socket to queues, streams and consumer groups."""
