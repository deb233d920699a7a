"""Headers, keys and includes of the Lua scripts."""

import re

import pytest

from storage.redis.keys import every_key, log_keys, queue_keys
from storage.redis.scripts import script, script_names

WRITES_NOTHING = {"list_dead_letters", "measure_log"}


@pytest.mark.parametrize("name", script_names())
def test_script_header_describes_purpose_keys_and_result(name):
    header = script(name).text.split("\n\n")[0]

    assert re.match(r"(#!lua flags=[a-z-]+\n)?-- [A-Z]", header)
    for word in ("KEYS", "Returns"):
        assert re.search(rf"^-- {word}\s", header, re.MULTILINE), word


@pytest.mark.parametrize("name", script_names())
def test_script_includes_are_expanded(name):
    assert "@include" not in script(name).text


def test_all_keys_of_a_log_share_one_slot():
    spelled = [*log_keys("ns", "l1"), *queue_keys("ns", "l1"), *every_key("ns", "l1")]

    assert {re.search(rb"\{(.*?)\}", key)[1] for key in spelled} == {b"l1"}  # type: ignore[index]


def test_queue_script_names_keys_in_argument_order():
    named = re.findall(r"(\w+) = KEYS\[(\d+)\]", script("receive_messages").text)

    parts = [name for name, place in sorted(named, key=lambda pair: int(pair[1]))]

    assert [key.decode().rsplit(":", 1)[1] for key in queue_keys("ns", "l1")] == parts


@pytest.mark.parametrize("name", script_names())
def test_script_that_changes_messages_includes_history_note(name):
    text = script(name).text

    if "local function make_ready" in text:
        assert text.index("local function note(") < text.index("local function make_ready")
