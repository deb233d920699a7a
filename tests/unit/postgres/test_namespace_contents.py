"""Contents of namespaces: what refuses their deletion, or is deleted with them."""

import re

import pytest
from sqlmodel import SQLModel

from storage.postgres.queries import query
from storage.postgres.repositories.namespaces import _DELETIONS

OWNED = [
    table.name
    for table in SQLModel.metadata.sorted_tables
    if any(
        key.target_fullname == "namespaces.name" and key.ondelete != "CASCADE"
        for key in table.foreign_keys
    )
    and table.name != "logs"  # they belong to queues, streams and webhooks
]


@pytest.mark.parametrize("table", OWNED)
def test_deletion_of_namespace_counts_or_deletes_each_table(table):
    """A namespace with a source was deleted up to the foreign key, and the answer was 500."""
    statements = [str(query(name)) for name in ("namespace_holds", *_DELETIONS)]

    assert any(re.search(rf"from {table}\b", statement) for statement in statements)


def test_sources_are_owned():
    assert {"queues", "streams", "sources"} <= set(OWNED)
