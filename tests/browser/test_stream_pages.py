"""Stream pages without a browser: permissions, paging, exports and code examples."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from api.admin.queue_snippets import ServiceAccess
from api.admin.stream_snippets import stream_snippets
from storage.domain.access.permissions import Role
from storage.domain.names import StreamName
from storage.domain.quotas import Quotas
from storage.domain.streams.stream import StreamSpec
from tests.browser.store_calls import store_calls
from tests.browser.world import CLICKS, CROWD, HOSTILE
from tests.conditions import PATIENCE_S, eventually
from tests.javascript import compile_typescript

pytestmark = pytest.mark.one_store

TYPESCRIPT = Path(__file__).parents[2] / "openapi" / "sdk" / "typescript"


async def see(service, path: str, **options) -> httpx.Response:
    """Get a page of the open address."""
    async with httpx.AsyncClient(base_url=service.open_url) as client:
        return await client.get(path, **options)


async def see_as(service, path: str, *roles: Role) -> httpx.Response:
    """Get a page as a caller with these roles."""
    key = await service.key(*roles)
    headers = {"authorization": f"Bearer {key.token}"}
    async with httpx.AsyncClient(base_url=service.keys_url, headers=headers) as client:
        return await client.get(path)


@pytest.mark.parametrize(
    "path",
    [
        "/ui/streams/clicks/browse",
        "/ui/streams/clicks/records.ndjson",
        "/ui/streams/clicks/shards/0/records/0/body",
    ],
)
async def test_records_require_read_permission(service, path):
    seen = await see_as(service, path, Role.VIEWER)
    read = await see_as(service, path, Role.CONSUMER)

    assert (seen.status_code, read.status_code) == (403, 200)
    assert "user-" not in seen.text


async def test_viewer_is_offered_no_actions(service):
    for path in ("streams/clicks/shards", "streams/clicks/settings", "groups/analytics", "replays"):
        page = await see_as(service, f"/ui/{path}", Role.VIEWER)

        assert page.status_code == 200
        assert page.text.count("<dialog id=") == 2  # the palette, and the shortcuts


async def test_body_is_downloaded_as_octet_stream(service):
    for nth, body in enumerate(HOSTILE):
        answer = await see(service, f"/ui/streams/readings/shards/0/records/{40 + nth}/body")

        assert answer.content == body
        assert answer.headers["content-type"] == "application/octet-stream"
        assert answer.headers["content-disposition"].startswith("attachment")
        assert answer.headers["x-content-type-options"] == "nosniff"


async def test_export_has_one_line_per_record_of_the_view(service):
    answer = await see(service, "/ui/streams/clicks/records.ndjson?at=earliest&key=user-7")
    lines = [json.loads(line) for line in answer.text.splitlines()]
    states = await service.storage.record_reader.shards(CLICKS)
    everything = await see(service, "/ui/streams/clicks/records.ndjson?at=earliest")

    assert {line["key"] for line in lines} == {"user-7"}
    assert len(everything.text.splitlines()) == sum(state.next for state in states)


@pytest.mark.parametrize("size", [7, 50])
async def test_paging_shows_every_record_once(service, size, monkeypatch):
    """Also across a split: children follow their parents."""
    monkeypatch.setattr("api.admin.pages.stream_records.ROWS", size)
    path = "/ui/streams/clicks/browse"
    states = await service.storage.record_reader.shards(CLICKS)
    seen: list[str] = []
    parameters: dict[str, str] | None = {"at": "earliest"}

    while True:
        page = (await see(service, path, params=parameters)).text
        seen += [part.partition('"')[0] for part in page.split('<tr data-row id="r-')[1:]]
        if 'rel="next"' not in page:
            break
        link = page.split('rel="next" href="')[1].partition('"')[0].replace("&amp;", "&")
        path, parameters = link, None

    assert len(seen) == len(set(seen)) == sum(state.next - state.start for state in states)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("at=time&time=never", "Expected a time"),
        ("at=offset&offset=3", "Select a shard"),
        ("shard=77", "no shard 77"),
        ("cursor=nonsense", "cursor"),
    ],
)
async def test_invalid_query_is_explained_on_the_page(service, query, said):
    page = await see(service, f"/ui/streams/clicks/browse?{query}")

    assert page.status_code == 200
    assert said in page.text


@pytest.mark.parametrize("query", ["at=sideways", "offset=-1", "see=x", "shard=-1"])
async def test_invalid_parameter_is_rejected_with_error_page(service, query):
    page = await see(service, f"/ui/streams/clicks/browse?{query}")

    assert page.status_code == 400
    assert "<h1>" in page.text


async def test_missing_record_and_offset_beyond_end_are_reported(service):
    gone = await see(service, "/ui/streams/readings/browse?see=0:999999")
    beyond = await see(service, "/ui/streams/readings/browse?at=offset&shard=0&offset=999999")

    assert "Record not found" in gone.text
    assert "No records here" in beyond.text


async def test_hostile_records_are_shown_as_text(service):
    for nth in range(len(HOSTILE)):
        for form in ("", "json", "text", "hex"):
            page = await see(service, f"/ui/streams/readings/browse?see=0:{40 + nth}&form={form}")

            assert page.status_code == 200
            assert "<script>window" not in page.text
            assert "<img" not in page.text
            assert "\u202e" not in page.text
            assert len(page.text) < 200_000


async def test_listing_many_streams_needs_no_more_statements(service):
    few, many = StreamName("only", "few"), [StreamName(f"s-{n:03}", "many") for n in range(60)]
    await service.storage.namespaces.put("few", Quotas())
    await service.storage.namespaces.put("many", Quotas())
    for name in (few, *many):
        await service.storage.catalog.put_stream(name, StreamSpec())

    asked = {}
    for namespace in ("few", "many"):
        await see(service, f"/ui/streams?ns={namespace}")
        with store_calls() as calls:
            page = await see(service, f"/ui/streams?ns={namespace}")
        asked[namespace] = len(calls.statements)
        assert page.status_code == 200

    assert asked["many"] <= asked["few"] + 1


async def test_listing_ten_thousand_queues_needs_bounded_calls(service):
    path = f"/ui/queues?ns={CROWD}&q=queue-099&sort=name"

    async def status():
        return (await see(service, path)).status_code

    await eventually(status, 200)  # their logs are opened once, concurrently

    with store_calls() as calls:
        page = await see(service, path)

    assert page.status_code == 200
    assert "queue-09900" in page.text
    assert calls.total < 300, calls  # five for each row of a page, and some more


async def test_code_examples_of_stream_run(service, tmp_path):
    compile_typescript(TYPESCRIPT)
    name = StreamName("run-me")
    await service.storage.catalog.put_stream(name, StreamSpec(shards=2))
    at = ServiceAccess(service.open_url, None, False)
    code = {snippet.key: snippet.text for snippet in stream_snippets(at, name.name)}

    append, read, _ = [line for line in code["curl"].splitlines() if line.startswith("curl")]
    for line in (append, read):
        await run("bash", "-c", line.replace("curl ", "curl -sSf ", 1))
    printed = [await run(sys.executable, "-c", code[key]) for key in ("python", "boto3")]
    program = tmp_path / "example.mjs"
    program.write_text(
        code["typescript"].replace("'millstream-client'", f"'{TYPESCRIPT}/dist/index.js'")
    )
    printed.append(await run("node", str(program)))

    assert all("ann" in text for text in printed)
    assert sum(state.next for state in await service.storage.record_reader.shards(name)) == 4


async def run(*command: str) -> str:
    """Run a program to a successful end, and return its output."""
    done = await asyncio.to_thread(
        subprocess.run, command, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
