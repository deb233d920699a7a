"""The dashboard's examples and placeholders: commands of empty states run as shown."""

import asyncio
import html
import os
import re
from collections.abc import AsyncIterator

import httpx
import pytest

from api.config.durations import parse_duration
from api.config.settings import Settings
from api.rest.schemas.queue import QueueConfig
from api.rest.schemas.stream import StreamConfig
from api.rest.schemas.topic import TopicConfig
from storage.access.secret_box import new_key
from storage.bootstrap import Storage, open_storage
from storage.domain.access.credentials import CredentialRequest, Rights
from storage.domain.access.permissions import LOCAL_ADMINISTRATOR, Role
from storage.domain.limits import Limits
from storage.settings import StorageSettings
from tests.websocket_client import running_server

pytestmark = pytest.mark.one_store

EMPTY = [
    "/ui",
    "/ui/streams",
    "/ui/queues",
    "/ui/topics",
    "/ui/groups",
    "/ui/webhooks",
    "/ui/replays",
]
"""Pages of an empty namespace, in an order in which what an example needs was created before."""

LATER = [
    "/ui/streams/empty/browse",
    "/ui/streams/alone/groups",
    "/ui/queues/empty/messages",
    "/ui/topics/empty",
    "/ui/topics/empty/messages",
    "/ui/groups/empty",
]
SHELL = 'set -e\ncurl() { command curl -sS --fail-with-body -m 20 "$@" && echo; }\n'


@pytest.fixture
async def storage(redis_url, database_url) -> AsyncIterator[Storage]:
    settings = StorageSettings(
        redis_url=redis_url, database_url=database_url, secret_keys=(new_key(),)
    )
    async with open_storage(settings) as storage:
        yield storage


async def administrator(storage: Storage) -> str:
    request = CredentialRequest(name="ada", rights=Rights(roles=(Role.ADMIN,)))
    _, secret = await storage.credentials.create(LOCAL_ADMINISTRATOR, request)
    return secret.token


async def logged_in(client: httpx.AsyncClient, key: str) -> None:
    made = await client.post("/v1/sessions", json={"api_key": key})
    client.headers["cookie"] = made.headers["set-cookie"].split(";")[0]


async def commands_of(client: httpx.AsyncClient, path: str) -> str:
    """Return the commands that a page offers to copy."""
    page = await client.get(path)
    assert page.status_code == 200, page.text
    [command] = re.findall(r'<pre tabindex="0"><code>(.*?)</code></pre>', page.text, re.DOTALL)
    return html.unescape(command)


async def run(commands: str, key: str) -> None:
    environment = {**os.environ, "MILLSTREAM_API_KEY": key}
    process = await asyncio.create_subprocess_exec(
        "bash",
        "-c",
        SHELL + commands,
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    assert process.returncode == 0, f"{commands}\n{output.decode()}"


@pytest.mark.parametrize("auth", ["open", "keys"])
async def test_examples_of_empty_pages_run(storage, auth):
    """One lacked the member's name, and where a key is required all lacked the key."""
    key = await administrator(storage)
    async with (
        running_server(storage, Limits(), Settings(auth=auth)) as server,
        httpx.AsyncClient(base_url=server.url) as client,
    ):
        if auth == "keys":
            await logged_in(client, key)
        for commands in [await commands_of(client, path) for path in EMPTY]:
            assert ("Authorization" in commands) is (auth == "keys")
            await run(commands, key)

        api = {"authorization": f"Bearer {key}"}
        for path, config in (
            ("streams/empty", {}),
            ("streams/alone", {}),
            ("queues/empty", {}),
            ("topics/empty", {}),
            ("groups/empty", {"stream": "empty"}),
        ):
            created = await client.put(f"/v1/{path}", json=config, headers=api)
            created.raise_for_status()
        await client.delete("/v1/groups/readers", headers=api)
        for path in LATER:
            await run(await commands_of(client, path), key)


async def test_placeholders_are_the_defaults_of_the_api(storage):
    """The form for a new stream promised a day of retention, and the stream had a week."""
    async with (
        running_server(storage, Limits(), Settings()) as server,
        httpx.AsyncClient(base_url=server.url) as client,
    ):
        for path, config, names in (
            ("/ui/streams", StreamConfig(), {"shards", "retention_seconds"}),
            ("/ui/queues", QueueConfig(), {"visibility_timeout_seconds", "attempts_max"}),
            ("/ui/topics", TopicConfig(), {"shards", "retention_seconds"}),
        ):
            page = (await client.get(path)).text
            fields = re.findall(r'<input name="(\w+)"[^>]*placeholder="([0-9.]+[smhd]*)"', page)
            defaults = config.model_dump(mode="json")

            assert {name for name, _ in fields} == names
            assert all(parse_duration(shown) == defaults[name] for name, shown in fields)
