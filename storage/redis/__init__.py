"""The hot tier: one client, one pipeline, and one script for each operation."""
