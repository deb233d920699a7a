"""Queries over streams, tables and views: what they read, and their results."""
