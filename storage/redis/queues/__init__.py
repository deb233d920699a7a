"""Typed wrappers of the queue scripts."""
