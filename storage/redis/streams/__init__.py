"""Typed wrappers of the log scripts."""
