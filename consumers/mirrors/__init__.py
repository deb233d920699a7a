"""Mirrors: pulling the streams of other deployments."""
