"""Migrations of the database, one revision after another (alembic)."""
