"""Queues with partitions: one queue to every user."""
