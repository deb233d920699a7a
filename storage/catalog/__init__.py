"""Definitions of queues, streams and namespaces, with their caches."""
