"""Mirrors: definitions, progress, promotion."""
