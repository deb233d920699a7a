"""Backup and restore of a deployment."""
