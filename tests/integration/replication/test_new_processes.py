"""Processes that start while the first of the stores that they are told is a replica, or away."""

import pytest

from storage.bootstrap import open_storage
from storage.domain.names import QueueName
from storage.domain.queues.queue import QueueSpec
from storage.settings import StorageSettings
from tests.integration.replication.conftest import Deployment
from tests.replica_sets import url_of


@pytest.fixture
async def settings(deployment: Deployment, database_url: str) -> StorageSettings:
    """Those of a process that is told the primary last."""
    row = await deployment.begin()
    others = [store for store in deployment.stores[:3] if store.address != row.primary]
    deployment.at(row.primary).run("DEL", "ms:version")
    return StorageSettings(
        redis_url=url_of([*others, deployment.at(row.primary)]),
        database_url=database_url,
        durability="replicated",
    )


@pytest.mark.parametrize("is_away", [False, True])
async def test_diagnosis_asks_the_primary(is_away, deployment, settings):
    """`doctor` said that the store is unreachable for as long as the first of them was away."""
    if is_away:
        primary = (await deployment.row()).primary
        first = next(one for one in deployment.stores if one.address != primary)
        first.kill()

    async with open_storage(settings) as storage:
        findings = {one.check: one for one in await storage.health.diagnose(pings=1)}
        figures = await storage.health.hot_figures()

    assert findings["store copies"].detail.startswith(f"{3 - is_away} of 3 stores in sync")
    assert figures.role == "master"


async def test_first_change_of_a_process_reaches_the_primary(deployment, settings):
    async with open_storage(settings) as storage:
        await storage.catalog.put_queue(QueueName("orders"), QueueSpec())
        deleted = await storage.catalog.delete_queue(QueueName("orders"))

    assert deleted.name == QueueName("orders")
