"""`show` of queues, streams, groups and webhooks, for people and programs."""

import pytest

from tests.cli_commands import millstream

pytestmark = pytest.mark.usefixtures("at_the_service")


@pytest.fixture
def objects(name: str) -> dict[str, str]:
    """A queue with a dead letter, a stream with records, a paused group and a webhook."""
    for words in (
        ("queue", "create", name),
        ("queue", "send", name, "a", "b", "c"),
        ("stream", "create", f"s-{name}"),
        ("stream", "put", f"s-{name}", "x", "y"),
        ("group", "create", f"g-{name}", f"s-{name}"),
        ("group", "pause", f"g-{name}"),
        ("webhook", "create", f"w-{name}", f"queue:{name}", "http://127.0.0.1:1/hooks"),
        ("webhook", "pause", f"w-{name}"),
    ):
        assert millstream(*words).code == 0
    [message] = millstream("queue", "receive", name, "--keep", "-o", "json").json
    handle = message["receipt_handle"]
    millstream("queue", "settle", name, handle, "--as", "reject", "--reason", "expired")
    return {"queue": name, "stream": f"s-{name}", "group": f"g-{name}", "webhook": f"w-{name}"}


@pytest.mark.parametrize(
    ("noun", "sections", "problem"),
    [
        ("queue", ["messages", "dead letters by reason", "settings"], "1 dead letters (1 expired)"),
        ("stream", ["groups", "shards", "settings"], "none"),
        ("group", ["lag", "shards", "settings"], "No members, and 2 records are unread."),
        ("webhook", ["health", "settings"], "Paused; `millstream webhook resume"),
    ],
)
@pytest.mark.parametrize("verb", ["show", "describe"])
def test_description_has_problems_before_its_sections(objects, noun, verb, sections, problem):
    shown = millstream(noun, verb, objects[noun])

    first, *others = shown.out.split("\n\n")
    titles = [part.splitlines()[0] for part in others]
    assert shown.code == 0, shown.err
    assert first.splitlines()[0].split() == ["name", objects[noun]]
    assert titles[0] == "problems"
    assert others[0].splitlines()[1].startswith(problem)
    assert set(sections) <= set(titles)
    assert titles[-1] == "settings"


def test_description_has_all_fields_for_programs(objects):
    queue = millstream("queue", "show", objects["queue"], "-o", "json").json
    stream = millstream("stream", "show", objects["stream"], "-o", "json").json
    group = millstream("group", "show", objects["group"], "-o", "json").json
    webhook = millstream("webhook", "show", objects["webhook"], "-o", "json").json

    assert (queue["attempts_max"], queue["stats"]["ready"]) == (10, 2)
    assert [len(queue["problems"]), len(stream["problems"])] == [1, 0]
    assert [shard["next"] for shard in stream["shard_list"]] == [2]
    assert [each["name"] for each in stream["groups"]] == [objects["group"]]
    assert group["lag"]["records"] == 2
    assert group["members"] == []
    assert webhook["health"]["state"] == "paused"
    assert webhook["deliveries"] == []
    assert {"measurement"} <= set(queue) & set(stream) & set(group)
