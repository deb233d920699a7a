"""Verbs of queues in the hot store."""
