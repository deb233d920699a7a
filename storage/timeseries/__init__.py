"""Time series of queues, streams, groups and namespaces."""
