"""Environment of alembic: migrates on the connection and in the transaction of the caller.

The caller is `storage.postgres.migrate`.
"""

from alembic import context

from storage.postgres import tables
from storage.postgres.schema_revision import remember_compatibility

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=tables.METADATA,
)
context.run_migrations()
remember_compatibility(context.get_bind())
