"""Bulk input and output of messages and records."""
