"""CLI commands, one noun in each module."""
