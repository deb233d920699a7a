"""`millstream stream` and `group`: records, shards and offsets."""

import re

import pytest

from tests.cli_commands import millstream

pytestmark = pytest.mark.usefixtures("at_the_service")


def test_records_are_put_and_read_in_every_format(clicks):
    put = millstream("stream", "put", clicks, "--key", "k", stdin=b"a\nb\n")
    values = millstream("stream", "put", clicks, "--json", "--key-field", "k", stdin=b'{"k":"k"}')

    read = millstream("stream", "read", clicks)
    result = millstream("stream", "read", clicks, "-o", "ndjson")
    again = millstream("stream", "put", clicks, "--records", stdin=result.out.encode())

    assert put.out == f"2 appended to stream {clicks}.\n"
    assert values.code == 0
    assert read.out == 'a\nb\n{"k":"k"}\n'
    assert [(line["data"], line["key"]) for line in result.lines] == [
        ("a", "k"),
        ("b", "k"),
        ({"k": "k"}, "k"),
    ]
    assert again.out == f"3 appended to stream {clicks}.\n"
    last = millstream("stream", "tail", clicks, "-n", "1", "-o", "json").json
    assert last[0]["data"] == {"k": "k"}


def test_invalid_line_is_reported_after_earlier_ones_are_put(clicks):
    put = millstream("stream", "put", clicks, "--json", stdin=b"1\n2\n{\n4\n")

    assert put.code == 5
    assert put.err.startswith("millstream: 2 were accepted, then: line 3: invalid JSON")
    assert millstream("stream", "read", clicks).out == "1\n2\n"


def test_offset_requires_shard(clicks):
    millstream("stream", "put", clicks, "a", "b", "c", "--key", "k")
    [first] = millstream("stream", "read", clicks, "-n", "1", "-o", "json").json
    shard = str(first["shard"])

    whose = millstream("stream", "read", clicks, "--from", "1")
    read = millstream(
        "stream", "read", clicks, "--from", "1", "--shard", shard, "-n", "1", "--long"
    )

    assert whose.code == 2
    assert "specify the offset's shard with --shard" in whose.err
    assert re.fullmatch(rf"\S+ {shard}:1 k b\n", read.out)
    assert millstream("stream", "read", clicks, "--from", "1h").out == "a\nb\nc\n"
    assert millstream("stream", "read", clicks, "--from", "latest").out == ""
    assert millstream("stream", "tail", clicks, "--shard", "9").code == 3


def test_read_and_tail_print_records_that_match(clicks):
    values = [str(number) for number in range(1_205)]
    millstream("stream", "put", clicks, "--key", "k", stdin="\n".join(values).encode())
    millstream("stream", "put", clicks, "--json", stdin=b'{"n": 1}\n{"n": 2}\n')
    millstream("stream", "put", clicks, "--key", "bytes", stdin=b"\xff")
    thousands = ("--where", "body % 1000 = 0")

    read = millstream("stream", "read", clicks, *thousands)
    limited = millstream("stream", "read", clicks, *thousands, "-n", "1", "-o", "ndjson")
    filtered = millstream("stream", "read", clicks, "--filter", '{"body": {"n": [2]}}')
    binary = millstream("stream", "read", clicks, "--filter", '{"key": ["bytes"]}', "-o", "json")
    tail = millstream("stream", "tail", clicks, "--where", "body.n = 1", "-n", "5")
    no_subject = millstream("stream", "read", clicks, "--subject", "order.*")
    invalid = millstream("stream", "read", clicks, "--where", "body >")
    no_json = millstream("stream", "tail", clicks, "--filter", "{")

    assert read.out == "0\n1000\n"
    assert [(line["data"], line["key"]) for line in limited.lines] == [("0", "k")]
    assert filtered.out == tail.out.replace("1", "2") == '{"n":2}\n'
    assert binary.json[0]["data_base64"] == "/w=="
    assert (no_subject.out, no_subject.code) == ("", 0)
    assert (invalid.code, "/match/where" in invalid.err) == (2, True)
    assert (no_json.code, "--filter is not JSON" in no_json.err) == (2, True)


def test_split_divides_recent_records(clicks):
    for number in range(8):
        millstream("stream", "put", clicks, "x", "--key", f"user-{number}")
    loads = millstream("stream", "load", clicks, "-o", "json").json
    busy = max(loads, key=lambda load: load["sampled"])

    assert busy["split"]["larger_share"] < 0.8
    assert "user-" in millstream("stream", "load", clicks).out
    assert "3 open shards" in reshard_by_load(clicks, busy["shard"]).out


def test_hot_key_is_not_split(clicks):
    for _ in range(3):
        millstream("stream", "put", clicks, "x", "--key", "tenant-7")
    loads = millstream("stream", "load", clicks, "-o", "json").json
    [hot, idle] = sorted(loads, key=lambda load: -load["sampled"])

    assert "has one hot key" in reshard_by_load(clicks, hot["shard"]).err
    assert "has no recent records" in reshard_by_load(clicks, idle["shard"]).err


@pytest.mark.parametrize("options", [("--at", "load"), ("--split", "0", "--at", "half")])
def test_invalid_split_point_is_refused(clicks, options):
    assert millstream("stream", "reshard", clicks, *options).code == 2


def reshard_by_load(stream, shard):
    return millstream("stream", "reshard", stream, "--split", str(shard), "--at", "load")


def test_stream_is_resharded(clicks):
    assert millstream("stream", "reshard", clicks).code == 2
    assert "4 open shards" in millstream("stream", "reshard", clicks, "--shards", "4").out
    shown = millstream("stream", "show", clicks, "-o", "json").json
    assert [shard["open"] for shard in shown["shard_list"]] == [False] * 2 + [True] * 4


def test_group_reset_requires_confirmation(clicks):
    millstream("stream", "put", clicks, "a", "b", "c", "--key", "k")
    millstream("group", "create", clicks, clicks)

    lag = millstream("group", "lag", clicks, "-o", "json").json
    plan = millstream("group", "reset", clicks, "--to", "latest", "--dry-run", "-o", "json").json
    asked = millstream("group", "reset", clicks, "--to", "latest")
    done = millstream("group", "reset", clicks, "--to", "latest", "--yes", "-o", "json").json

    assert lag["records"] == 3
    assert plan["dry_run"] is True
    assert (asked.code, "in 2 shards" in asked.err) == (2, True)
    assert sorted(shard["after"] for shard in done["shards"]) == [0, 3]
    assert millstream("group", "lag", clicks, "-o", "json").json["records"] == 0
