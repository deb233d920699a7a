"""Permissions, credentials, egress rules and audit entries."""
