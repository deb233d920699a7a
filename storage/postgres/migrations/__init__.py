"""How the database came to be what it is, one revision after another (alembic)."""
