"""CLI commands, one noun per module."""
