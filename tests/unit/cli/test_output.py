"""Output of the command line, for terminals and for programs."""

import io
import logging

import msgspec
import pytest

from api.cli.errors import ExitCode
from api.cli.grammar.common_options import OutputFormat
from api.cli.io.rows import InvalidInputLine, delivery_row, key_in, message_from, record_from
from api.cli.io.stdin import line_batches
from api.cli.shell.error_messages import cli_error_from
from api.cli.shell.output import (
    Column,
    Output,
    strip_control_characters,
    table,
    to_row,
)
from api.cli.shell.progress import JobNotices, ProgressLines, sentence
from api.cli.shell.sdk_warnings import listen
from millstream_client import NewMessage
from millstream_client.errors import (
    ConnectionFailed,
    ItemRefused,
    PartlyRefused,
    refusal,
)
from millstream_client.messages import Delivery

SHAPE = table("name", Column("at.shard", "where"), "wait_seconds", "made_at")
ROW = {
    "name": "orders",
    "at": {"shard": 3},
    "wait_seconds": 90,
    "made_at": "2026-01-31T12:00:00.123Z",
    "more": [1, 2],
}


def shown(form: OutputFormat, *, quiet: bool = False, rows: bool = True) -> str:
    file = io.BytesIO()
    out = Output(form, quiet=quiet, file=file, is_terminal=False)
    if rows:
        out.rows([ROW, {**ROW, "name": "a"}], SHAPE)
    else:
        out.show(ROW, at=None)
    return file.getvalue().decode()


def test_table_shows_selected_fields():
    assert shown(OutputFormat.TABLE).splitlines() == [
        "name    where  wait seconds  made at",
        "orders  3      90s           2026-01-31T12:00:00Z",
        "a       3      90s           2026-01-31T12:00:00Z",
    ]


def test_quiet_list_shows_names_only():
    assert shown(OutputFormat.TABLE, quiet=True) == "orders\na\n"


def test_json_is_one_value_and_ndjson_one_per_line():
    assert msgspec.json.decode(shown(OutputFormat.JSON)) == [ROW, {**ROW, "name": "a"}]
    assert list(map(msgspec.json.decode, shown(OutputFormat.NDJSON).splitlines())) == [
        ROW,
        {**ROW, "name": "a"},
    ]
    assert msgspec.json.decode(shown(OutputFormat.JSON, rows=False)) == ROW


def test_nested_objects_are_shown_as_sections():
    assert shown(OutputFormat.TABLE, rows=False).splitlines() == [
        "name          orders",
        "wait_seconds  90s",
        "made_at       2026-01-31T12:00:00Z",
        "more          1, 2",
        "",
        "at",
        "shard  3",
    ]


def test_control_sequences_in_cells_are_escaped():
    file = io.BytesIO()

    Output(OutputFormat.TABLE, file=file, is_terminal=True).rows(
        [{"name": "\x1b[2J[red]x\r"}], table("name")
    )

    assert b"\x1b[2J" not in file.getvalue()
    assert b"\\x1b[2J[red]x\\r" in file.getvalue()
    assert strip_control_characters("größe\n") == "größe\\n"


def test_table_fits_terminal_without_losing_text(monkeypatch):
    monkeypatch.setenv("COLUMNS", "20")
    monkeypatch.setenv("NO_COLOR", "1")
    file = io.BytesIO()

    Output(OutputFormat.TABLE, file=file, is_terminal=True).rows(
        [{"name": "a" * 30}], table("name")
    )

    _, *lines = file.getvalue().decode().splitlines()
    assert "".join(lines) == "a" * 30
    assert all(len(line) <= 20 for line in lines)


def test_times_are_normalised_and_bodies_unchanged():
    class Told(msgspec.Struct):
        sent_at: str
        body: dict[str, str]

    told = Told("2026-01-31T12:00:00.120000+00:00", {"a_at": "2026-01-31T12:00:00.120000+00:00"})

    row = to_row(told)

    assert row["sent_at"] == "2026-01-31T12:00:00.120Z"
    assert row["body"] == told.body


def delivery(body: bytes, content_type: str) -> Delivery:
    moment = msgspec.convert("2026-01-31T12:00:00Z", type=Delivery.__annotations__["sent_at"])
    return Delivery(
        id="m",
        body=body,
        content_type=content_type,
        receipt_handle="r",
        offset=0,
        sent_at=moment,
        first_received_at=moment,
        visible_at=moment,
        receive_count=1,
        failures=0,
        crash_count=0,
    )


@pytest.mark.parametrize(
    ("body", "content_type", "said"),
    [
        (b'{"a":1}', "application/json", {"body": {"a": 1}}),
        (b'{"a":1}', "", {"body": '{"a":1}'}),
        (b"{", "application/json; charset=utf-8", {"body": "{"}),
        (b"\xff", "", {"body_base64": "/w=="}),
        (b"", "", {"body": ""}),
        (b"null", "application/json", {"body": None}),
    ],
)
def test_body_is_shown_as_in_rest_api(body, content_type, said):
    row = delivery_row(delivery(body, content_type))

    assert {name: row[name] for name in row if name.startswith("body")} == said


@pytest.mark.parametrize("body", [b"hello", b'{"a":1}', b"\xff\x00", b""])
def test_displayed_message_can_be_sent(body):
    line = msgspec.json.encode(delivery_row(delivery(body, "")))

    again = message_from(line)

    assert isinstance(again, NewMessage)
    assert (again.body.encode() if isinstance(again.body, str) else again.body) == body


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        (b"{", "invalid JSON"),
        (b"[]", "not a JSON object"),
        (b"{}", "'data' or 'data_base64' is required"),
        (b'{"data_base64":"!"}', "'data_base64' is not valid base64"),
        (b'{"data":1,"event_time":"soon"}', "event_time 'soon' is not a valid time"),
    ],
)
def test_line_that_is_not_a_record_is_rejected(line, fault):
    with pytest.raises(InvalidInputLine, match=fault):
        record_from(line)


def test_key_may_be_a_field_of_the_data():
    assert key_in({"user": "ann"}, "user") == "ann"
    assert key_in({"user": 7}, "user") == "7"
    with pytest.raises(InvalidInputLine, match="field 'user' is missing"):
        key_in({"user": None}, "user")


class Dripping(io.RawIOBase):
    """A pipe that returns the written pieces one by one."""

    def __init__(self, *pieces: bytes) -> None:
        self._pieces = list(pieces)

    def read1(self, size: int) -> bytes:
        return self._pieces.pop(0) if self._pieces else b""


def test_lines_are_yielded_as_they_arrive():
    pipe = Dripping(b"a\nb\r\nc", b"c", b"\n\nd")

    assert list(line_batches(pipe)) == [[b"a", b"b"], [b"cc", b""], [b"d"]]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (ConnectionFailed("nobody there"), ExitCode.UNAVAILABLE, "millstream up"),
        (
            refusal(404, {"code": "queue_not_found", "detail": "No."}),
            ExitCode.NOT_FOUND,
            "queue ls",
        ),
        (refusal(422, {"code": "bad", "detail": "Wrong."}), ExitCode.USAGE, "Wrong."),
        (refusal(503, {"code": "storage_unavailable"}), ExitCode.UNAVAILABLE, "--retry"),
        (refusal(409, {"code": "conflict", "detail": "Two\nlines."}), ExitCode.ERROR, "Two lines."),
        (PartlyRefused([ItemRefused("full", "Full.", False), 1]), ExitCode.PARTIAL, "1 of 2"),
    ],
)
def test_error_is_one_line_with_hint_and_exit_code(error, code, said):
    trouble = cli_error_from(error)

    assert trouble.code == code
    assert said in str(trouble)
    assert "\n" not in str(trouble)


AT_SHARDS = {"pointer": "/shards", "detail": "At least 1"}
AT_TAGS = {"pointer": "/tags", "detail": "Too many"}


@pytest.mark.parametrize(
    ("detail", "faults", "said"),
    [
        ("At least 1", [AT_SHARDS], "/shards: At least 1 (bad)"),
        ("/shards: At least 1", [AT_SHARDS], "/shards: At least 1 (bad)"),
        ("/shards: At least 1; and 1 more", [AT_SHARDS, AT_TAGS], "and 1 more [/tags: Too many] (bad)"),
        ("Wrong", [AT_SHARDS, AT_TAGS], "Wrong [/shards: At least 1; /tags: Too many] (bad)"),
    ],
)  # fmt: skip
def test_faults_are_listed_once(detail, faults, said):
    trouble = cli_error_from(refusal(422, {"code": "bad", "detail": detail, "errors": faults}))

    assert said in str(trouble)
    assert str(trouble).count("At least 1") == 1


def test_progress_shows_rate_and_remaining_time():
    assert sentence("sent", 1_200, 5_000, 400) == "sent 1200 of 5000 (24 %), 400/s, 10s left"
    assert sentence("sent", 7, None, 0) == "sent 7, 0/s"


def test_progress_lines_are_rate_limited():
    said: list[str] = []
    moments = iter([0.0, 1.0, 6.0, 7.0, 12.0])
    lines = ProgressLines("sent", said.append, lambda: next(moments))

    for done in (0, 60, 70, 120):
        lines.to(done, 120)

    assert said == ["sent 60 of 120 (50 %), 10/s, 6s left", "sent 120 of 120 (100 %), 10/s"]


def test_repeated_failure_reason_is_reported_once():
    lines: list[str] = []
    notices = JobNotices(lines.append)

    for failure in ("", "no way", "no way", "", "no way", "no room"):
        notices.report(failure, None)

    assert [line.rpartition(": ")[2] for line in lines] == ["no way", "no way", "no room"]


def test_repeated_reason_to_wait_is_reported_once():
    """A replay without a worker stayed queued without a word."""
    lines: list[str] = []
    notices = JobNotices(lines.append)

    for reason in (None, "worker", "worker", None, "readers"):
        notices.report("", reason)

    assert [line.partition(",")[0] for line in lines] == [
        "waiting for a worker",
        "waiting for the target's readers",
    ]


def test_repeated_log_message_is_shown_once():
    told: list[str] = []
    end = listen(told.append)
    logger = logging.getLogger("millstream_client")

    for line in ("away", "away", "back", "away"):
        logger.warning("it is %s", line)
    end()
    logger.handlers.append(logging.NullHandler())
    logger.warning("unheard")
    logger.handlers.pop()

    assert told == ["millstream: it is away", "millstream: it is back", "millstream: it is away"]
