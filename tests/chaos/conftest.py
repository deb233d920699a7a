"""A service for the programs that are killed."""

from collections.abc import Iterator

import pytest

from storage.settings import StorageSettings
from tests.contract.conftest import deployment


@pytest.fixture(scope="module")
def chaos_service(
    postgres_server_url: str, migrated_template: str
) -> Iterator[tuple[str, StorageSettings]]:
    """URL and store settings of the service."""
    with deployment(postgres_server_url, migrated_template, "chaos") as actual_deployment:
        yield actual_deployment
