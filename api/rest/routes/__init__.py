"""REST routes, one noun per module."""
