"""Queues with partitions: which partition a call goes to, and one result from several."""
