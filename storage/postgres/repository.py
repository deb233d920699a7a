"""Base of repositories."""

import attrs

from storage.postgres.database import Database


@attrs.define(eq=False, slots=False)
class Repository:
    """Rows of some tables."""

    _database: Database
