"""Version of a webhook that its deliverer serves: shows when a change is in force."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    """Add the version; it is null while a deliverer of an earlier version has the lease."""
    op.add_column("webhooks", sa.Column("served_version", sa.BigInteger))
