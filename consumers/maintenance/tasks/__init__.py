"""Maintenance tasks, one in each module."""
