"""Definitions of webhooks, and their secrets."""

import psycopg
import pytest

from storage.bootstrap import open_storage
from storage.domain.errors import PreconditionFailed, SecretsOff, ValidationFailed
from storage.domain.limits import DAY_MS
from storage.domain.names import QueueName
from storage.domain.queues.queue import QueueSpec
from storage.domain.webhooks import Source, WebhookSpec
from tests.integration.webhooks.conftest import HOOK, ORDERS

pytestmark = pytest.mark.one_store


async def test_put_of_equal_configuration_changes_nothing(bench, storage):
    first = await bench.queue_hook(headers=(("a", "1"),))
    same = await bench.hook("queue:orders", headers=(("a", "1"),))
    left_out = await bench.hook("queue:orders")
    changed = await bench.hook("queue:orders", headers=(("a", "2"),))
    served = await storage.webhooks.opened(HOOK)

    assert (first.version, same.version, left_out.version, changed.version) == (1, 1, 1, 2)
    assert changed.spec.headers == (("a", ""),)
    assert served.webhook.spec.headers == (("a", "2"),)


async def test_secrets_are_encrypted_in_database(bench, storage, database_url):
    await bench.queue_hook(headers=(("authorization", "Bearer opensesame"),))
    secret, *_ = await storage.webhooks.rotate(HOOK, DAY_MS)
    served = await storage.webhooks.opened(HOOK)

    with psycopg.connect(database_url) as connection:
        rows = connection.execute("select * from webhooks").fetchall()
        rows += connection.execute("select * from webhook_secrets").fetchall()
    assert "opensesame" not in repr(rows)
    assert secret.value not in repr(rows)
    assert served.secrets[0].value == secret.value
    assert len(served.secrets) == 2


async def test_number_of_signing_secrets_is_limited(bench, storage):
    await bench.queue_hook()
    for _ in range(8):
        await storage.webhooks.rotate(HOOK, DAY_MS)

    assert len((await storage.webhooks.opened(HOOK)).secrets) == 5


async def test_source_must_exist_and_cannot_change(bench, storage):
    await bench.queue_hook()
    await storage.catalog.put_queue(QueueName("other"), QueueSpec())

    with pytest.raises(ValidationFailed, match="immutable"):
        await bench.hook("queue:other")
    with pytest.raises(ValidationFailed, match="does not exist"):
        await bench.hook("queue:none")
    with pytest.raises(ValidationFailed, match="does not exist"):
        await bench.hook("group:none")


async def test_stale_version_is_rejected(bench, storage):
    webhook = await bench.queue_hook()

    with pytest.raises(PreconditionFailed):
        await storage.webhooks.put(HOOK, webhook.spec, if_match=7)
    with pytest.raises(PreconditionFailed):
        await storage.webhooks.put(HOOK, webhook.spec, create_only=True)
    with pytest.raises(PreconditionFailed):
        await storage.webhooks.delete(HOOK, if_match=7)


async def test_webhooks_require_secret_key(hook_settings, clock):
    told = hook_settings.model_copy(update={"secret_keys": ()})
    async with open_storage(told, clock=clock) as storage:
        await storage.catalog.put_queue(ORDERS, QueueSpec())
        spec = WebhookSpec(source=Source.of("queue:orders"), url="https://example.com/")

        with pytest.raises(SecretsOff):
            await storage.webhooks.put(HOOK, spec)
