"""Maintenance tasks, one noun in each module."""
