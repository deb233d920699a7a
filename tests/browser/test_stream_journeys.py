"""Journeys with streams: watch lag, reset a group, replay, tail, share a link."""

import json

import pytest
from msgspec.structs import replace
from playwright.async_api import Page, expect

from storage.bootstrap import Storage
from storage.domain.groups.group import Commit, GroupKind, GroupSpec
from storage.domain.jobs import JobState
from storage.domain.log.record_batch import Record
from storage.domain.names import GroupName, StreamName
from storage.domain.streams.stream import StreamSpec, hash_key
from tests.browser.conftest import a_context
from tests.browser.observations import Complaints, look
from tests.browser.world import MARKER

pytestmark = pytest.mark.one_store


async def a_stream(storage, name: str, count: int, shards: int = 1) -> StreamName:
    """Create a stream with the given number of records."""
    made = StreamName(name)
    await storage.catalog.put_stream(made, StreamSpec(shards=shards))
    await put(storage, made, 0, count)
    return made


async def put(storage, name: StreamName, first: int, count: int) -> None:
    """Append numbered records."""
    if not count:
        return
    records = [
        Record(json.dumps({"n": n}).encode(), f"key-{n % 7}") for n in range(first, first + count)
    ]
    await storage.streams.append(name, records)


async def a_group(storage, name: str, stream: StreamName, committed: int) -> GroupName:
    """Create a group with a committed offset in shard 0."""
    made = GroupName(name)
    await storage.groups.put(made, GroupSpec(stream=stream.name, kind=GroupKind.SIMPLE))
    await storage.groups.commit(made, [Commit(0, committed)])
    return made


async def committed_of(storage: Storage, group: GroupName) -> int | None:
    """The committed offset in shard 0."""
    _, _, shards = await storage.groups.describe(group)
    committed: int | None = shards[0].committed
    return committed


async def follow(page: Page, name: str) -> None:
    """Follow a link by its text."""
    await page.get_by_role("link", name=name, exact=True).first.click()


async def test_lag_is_shown_from_list_to_shard(page, service):
    storage = service.storage
    stream = await a_stream(storage, "watched", 30)
    await a_group(storage, "watchers", stream, 12)
    await storage.time_series.sample()

    await page.goto("/ui/streams?q=watched")
    await follow(page, "watched")
    await follow(page, "Groups")
    await page.get_by_role("main").get_by_role("link", name="watchers").click()

    lag = page.locator(".tile", has_text="Lag").first
    await expect(lag).to_contain_text("18")
    await put(storage, stream, 30, 5)
    for _ in range(2):
        await page.keyboard.press("p")  # paused and resumed: it refreshes immediately
    await expect(lag).to_contain_text("23")


async def test_reset_is_previewed_before_it_is_done(page, service):
    storage = service.storage
    stream = await a_stream(storage, "rewound", 40)
    group = await a_group(storage, "rewinders", stream, 25)
    await page.goto("/ui/groups/rewinders")
    await page.get_by_role("button", name="Reset…").click()
    dialog = page.get_by_role("dialog")

    await dialog.get_by_label("An offset").check()
    await dialog.get_by_placeholder("offset").fill("10")
    await dialog.get_by_role("button", name="Preview").click()
    await expect(dialog.get_by_text("15 records read again, 0 records skipped")).to_be_visible()
    await look(page, "journey-reset")
    before = await committed_of(storage, group)
    go = dialog.get_by_role("button", name="Reset", exact=True)
    await expect(go).to_be_disabled()
    await dialog.get_by_label("Type rewinders to confirm").fill("rewinders")
    await go.click()

    await expect(page.get_by_text("Group reset")).to_be_visible()
    assert (before, await committed_of(storage, group)) == (25, 10)


async def test_changed_reset_requires_another_preview(page, service):
    storage = service.storage
    stream = await a_stream(storage, "unsure", 20)
    group = await a_group(storage, "doubters", stream, 5)
    await page.goto("/ui/groups/doubters")
    await page.get_by_role("button", name="Reset…").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_role("button", name="Preview").click()
    await expect(dialog.get_by_label("Type doubters to confirm")).to_be_visible()

    await dialog.get_by_label("Latest").check()

    await expect(dialog.get_by_label("Type doubters to confirm")).to_be_hidden()
    await expect(dialog.get_by_role("button", name="Reset", exact=True)).to_be_disabled()
    assert await committed_of(storage, group) == 5


async def test_replay_is_previewed_started_paused_and_cancelled(page, service):
    storage = service.storage
    await a_stream(storage, "old-orders", 33)
    await a_stream(storage, "new-orders", 0)
    await page.goto("/ui/replays?stream=old-orders")
    await page.get_by_role("button", name="New replay").click()
    dialog = page.get_by_role("dialog")

    await dialog.get_by_label("Target stream").fill("new-orders")
    start = dialog.get_by_role("button", name="Start")
    await expect(start).to_be_disabled()
    await dialog.get_by_role("button", name="Preview").click()
    await expect(dialog.get_by_text("It would send 33 records")).to_be_visible()
    await look(page, "journey-replay")
    await start.click()
    await page.wait_for_url("**/ui/replays/*")
    replay_id = page.url.rpartition("/")[2]
    await page.get_by_role("button", name="Pause", exact=True).click()
    await expect(page.get_by_role("button", name="Resume")).to_be_visible()
    await page.get_by_role("button", name="Cancel…").click()
    await page.get_by_role("button", name="Cancel the replay").click()
    await expect(page.get_by_text("Cancelled", exact=True)).to_be_visible()

    assert (await storage.replays.get("default", replay_id)).job.state is JobState.CANCELLED


async def test_replay_takes_names_filters_and_offsets(page, service):
    storage = service.storage
    stream = await a_stream(storage, "picked-orders", 9)
    await a_stream(storage, "picked-copies", 0)
    await page.goto("/ui/replays")
    await page.get_by_role("button", name="New replay").click()
    dialog = page.get_by_role("dialog")

    await dialog.get_by_label("Source stream").press_sequentially("picked-o")
    await expect(dialog.locator("datalist option")).to_have_text(["picked-orders"])
    await dialog.get_by_label("Source stream").fill("picked-orders")
    await dialog.get_by_label("Target stream").fill("picked-copies")
    await dialog.get_by_text("Filter by header and field, offsets").click()
    await dialog.get_by_label("Headers").fill("source=web")
    await dialog.get_by_label("Body fields").fill("/n=2\n/note")
    await dialog.get_by_label("From offsets").fill("0:1")
    await dialog.get_by_role("button", name="Preview").click()
    await expect(dialog.locator(".trouble")).to_contain_text("are not offsets: use 0=120")
    await dialog.get_by_label("From offsets").fill("0=1")
    await dialog.get_by_role("button", name="Preview").click()
    await expect(dialog.get_by_text("It would send")).to_be_visible()
    await look(page, "journey-replay-filter")
    await dialog.get_by_role("button", name="Start").click()
    await page.wait_for_url("**/ui/replays/*")

    replay = await storage.replays.get("default", page.url.rpartition("/")[2])
    request = replay.spec.request
    await expect(page.get_by_text("/n=2, /note")).to_be_visible()
    assert request.filter.headers == {"source": "web"}
    assert [one.term for one in request.filter.body] == ["/n=2", "/note"]
    assert request.start is not None
    assert request.start.offsets == ((0, 1),)
    assert request.stream == stream.name


async def test_tail_shows_new_records_and_buffers_while_paused(page, service):
    storage = service.storage
    complaints = Complaints(page)
    stream = await a_stream(storage, "tailed", 3)
    await page.goto("/ui/streams/tailed/browse?at=live")
    state = page.locator("[data-tail-state]")
    await expect(state).to_contain_text("Live")
    rows = page.locator("#tail tr")

    await put(storage, stream, 3, 2)
    await expect(rows).to_have_count(2)
    await page.get_by_role("button", name="Pause", exact=True).click()
    await put(storage, stream, 5, 3)
    await expect(state).to_contain_text("Paused, 3 waiting")
    held = await rows.count()
    await page.get_by_role("button", name="Resume").click()
    await expect(rows).to_have_count(5)

    assert held == 2
    assert await rows.first.locator("td").nth(1).inner_text() == "7"  # newest first
    assert complaints == []


async def test_tail_escapes_markup_in_records(page, service):
    storage = service.storage
    stream = await a_stream(storage, "tailed-hostile", 0)
    await page.goto("/ui/streams/tailed-hostile/browse?at=live")
    await expect(page.locator("[data-tail-state]")).to_contain_text("Live")

    hostile = f'<img src=x onerror="{MARKER}">\u202e'
    await storage.streams.append(stream, [Record(hostile.encode(), hostile)])
    await expect(page.locator("#tail tr")).to_have_count(1)

    assert await page.evaluate("window.pwned") is None
    assert await page.locator("#tail img").count() == 0
    assert "U+202E" in await page.locator("#tail tr").first.inner_text()


async def test_filtered_tail_shows_only_matches(page, service):
    storage = service.storage
    stream = await a_stream(storage, "tailed-part", 0)
    await page.goto("/ui/streams/tailed-part/browse?at=live&q=needle")
    await expect(page.locator("[data-tail-state]")).to_contain_text("Live")

    await storage.streams.append(stream, [Record(b"hay"), Record(b"a NEEDLE"), Record(b"hay")])

    await expect(page.locator("#tail tr")).to_have_count(1)
    await expect(page.locator("#tail tr")).to_contain_text("a NEEDLE")


async def test_link_shows_the_same_records_to_others(page, browser, service):
    await page.goto("/ui/streams/clicks/browse")
    await page.locator("select[name=at]").select_option("An offset")
    await page.locator("select[name=shard]").select_option("2")
    await page.locator("input[name=offset]").fill("17")
    await page.get_by_role("button", name="Search", exact=True).click()
    await page.get_by_role("link", name="21", exact=True).click()
    await expect(page.get_by_role("heading", name="Shard 2, offset 21")).to_be_visible()
    shared = page.url

    async with a_context(browser, service.open_url) as context:
        other = await context.new_page()
        await other.goto(shared)

        await expect(other.get_by_role("heading", name="Shard 2, offset 21")).to_be_visible()
        await expect(other.locator("tbody tr").first).to_contain_text("17")
        assert await other.locator("input[name=offset]").input_value() == "17"


async def test_shard_is_split_at_the_chosen_point(page, service):
    storage = service.storage
    stream = await a_stream(storage, "split-me", 5)
    await page.goto("/ui/streams/split-me/shards")

    await page.get_by_role("button", name="Split").first.click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Divide the records of the last minute evenly").uncheck()
    await dialog.get_by_label("Split point").fill("25")
    told = "Shard 0 (100 % of the hash keys) splits into 25 % and 75 %."
    await expect(dialog.get_by_text(told)).to_be_visible()
    await look(page, "journey-split")
    await dialog.get_by_role("button", name="Split").click()
    await expect(page.locator("#shard-2")).to_be_visible()

    [first, second] = (await storage.catalog.fresh_stream(stream)).open_shards
    assert first.last_hash_key + 1 == second.first_hash_key == 2**126


async def test_hot_shard_is_found_and_its_load_divided(page, service):
    storage = service.storage
    stream = await a_stream(storage, "hot-shard", 0, shards=2)
    hot, quiet = (await storage.catalog.fresh_stream(stream)).open_shards
    keys = [key for number in range(400) if hot.takes(hash_key(key := f"user-{number}"))]
    await storage.streams.append(stream, [Record(b"x", key) for key in keys])
    await page.goto("/ui/streams/hot-shard/shards")

    await expect(page.locator(f"#shard-{hot.index}")).to_contain_text("100 %")
    await look(page, "journey-hot-shard")
    await page.get_by_role("button", name="Split").first.click()
    dialog = page.get_by_role("dialog")
    await expect(dialog.locator("[data-split]")).to_have_value(str(hot.index))
    await expect(dialog.get_by_text("The busier one gets 50 % of its records.")).to_be_visible()
    await look(page, "journey-hot-shard-split")
    await dialog.get_by_role("button", name="Split").click()
    await expect(page.locator("#shard-2")).to_be_visible()

    [first, _] = [
        shard
        for shard in (await storage.catalog.fresh_stream(stream)).open_shards
        if shard.index != quiet.index
    ]
    of_first = sum(first.takes(hash_key(key)) for key in keys)
    assert of_first == pytest.approx(len(keys) / 2, abs=1)


async def test_shard_with_one_hot_key_is_not_worth_a_split(page, service):
    storage = service.storage
    stream = await a_stream(storage, "hot-key", 0)
    keys = ["tenant-7"] * 90 + [f"user-{number}" for number in range(10)]
    await storage.streams.append(stream, [Record(b"x", key) for key in keys])
    await page.goto("/ui/streams/hot-key/shards")

    await expect(page.locator("#shard-0")).to_contain_text("tenant-7 90 %")
    await expect(page.get_by_text("One key: a split does not help")).to_be_visible()
    await page.get_by_role("button", name="Split").first.click()
    await expect(page.get_by_text("One key has most of its records")).to_be_visible()


async def test_settings_show_difference_before_saving(page, service):
    storage = service.storage
    stream = await a_stream(storage, "set-me", 0)
    await page.goto("/ui/streams/set-me/settings")

    await page.locator("[name=retention_seconds]").fill("1h")
    await expect(page.locator("[data-diff]")).to_contain_text("Retention period7d→1h")
    await page.get_by_role("button", name="Save").click()
    await expect(page.locator(".field.changed [name=retention_seconds]")).to_have_value("1h")

    assert (await storage.catalog.fresh_stream(stream)).spec.retention_ms == 3_600_000


async def test_concurrently_changed_settings_are_not_overwritten(page, service):
    storage = service.storage
    stream = await a_stream(storage, "set-by-two", 0)
    await page.goto("/ui/streams/set-by-two/settings")
    await storage.catalog.change_stream(stream, lambda spec: replace(spec, retention_records=9))

    await page.locator("[name=retention_records]").fill("7")
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_role("alert")).to_contain_text("version")

    assert (await storage.catalog.fresh_stream(stream)).spec.retention_records == 9


async def test_deleting_stream_requires_its_name(page, service):
    storage = service.storage
    await a_stream(storage, "delete-me", 9)
    await page.goto("/ui/streams/delete-me/settings")
    await page.get_by_role("button", name="Delete…").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog.get_by_text("9 records")).to_be_visible()
    delete = dialog.get_by_role("button", name="Delete the stream")

    await dialog.get_by_label("Type delete-me to confirm").fill("delete")
    await expect(delete).to_be_disabled()
    await dialog.get_by_label("Type delete-me to confirm").fill("delete-me")
    await delete.click()
    await page.wait_for_url("**/ui/streams")

    assert "delete-me" not in await storage.search.stream_names("default")
