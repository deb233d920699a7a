"""Typed wrappers of the outbox scripts."""
