"""REST routes, one noun in each module."""
