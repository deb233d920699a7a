"""Maintenance tasks and their scheduler."""
