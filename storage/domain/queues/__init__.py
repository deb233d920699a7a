"""Queues, messages and the policies of their delivery."""
