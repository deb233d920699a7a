"""Limits of the hot store, Postgres and the archive."""
