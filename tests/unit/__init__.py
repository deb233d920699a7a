"""Unit tests: rules and values, without a server."""
