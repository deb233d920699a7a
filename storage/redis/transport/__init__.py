"""Connections, command lanes, group commit and request coalescing."""
