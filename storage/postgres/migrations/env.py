"""Run by alembic: migrate on the connection that `storage.postgres.migrate` hands in, in its transaction."""

from alembic import context

from storage.postgres import tables

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=tables.METADATA,
)
context.run_migrations()
