"""Results of contenders: rates, latencies of calls, and processor time for each message."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from statistics import median
from typing import Any, NamedTuple

from tests.bench.ratios import shown

OPERATIONS = {
    "send": "send 1",
    "work": "receive and acknowledge 10",
    "produce": "append 500",
    "read": "read 500",
}
TOPIC_OPERATIONS = {
    "publish": "publish 1",
    "publish-batch": "publish 500",
    "fan-out": "until all copies are acknowledged",
}
VIEW_OPERATIONS = {
    "cold": "start, and all rows of the log",
    "warm": "all rows of the log",
    "live": "append to row",
}
LEFT_OUT = "What these numbers leave out:"


class Subject(StrEnum):
    """A table of contenders that do the same work; the value is its mark in docs/performance.md."""

    LOGS = "compare"
    TOPICS = "compare-topics"
    VIEWS = "compare-views"


OPERATIONS_OF: Mapping[Subject, Mapping[str, str]] = {
    Subject.LOGS: OPERATIONS,
    Subject.TOPICS: TOPIC_OPERATIONS,
    Subject.VIEWS: VIEW_OPERATIONS,
}
_MESSAGES = (
    "Messages per second; the 50th / 99th percentile of a call's latency; processor time of a message, of all "
    "processes together."
)
CAPTIONS: Mapping[Subject, str] = {
    Subject.LOGS: _MESSAGES,
    Subject.TOPICS: _MESSAGES,
    Subject.VIEWS: "Records per second; the time until all rows are complete, or the 50th / 99th percentile from an append to its "
    "row; processor time of a record, and peak of memory, of all processes together except the client.",
}
DURABLE: Mapping[Subject, str] = {
    Subject.LOGS: "acknowledged is",
    Subject.TOPICS: "acknowledged is",
    Subject.VIEWS: "a row that is read is",
}


class Durability(StrEnum):
    """Place of a message when it is acknowledged."""

    DISK = "on disk"
    WRITTEN = "written, fsync later"
    MEMORY = "in memory"


class Did(NamedTuple):
    """One round of an operation: latencies are those of a call, the processor time of all processes.

    A round that waits once has the same latency twice. Memory is measured of views alone.
    """

    messages_s: float
    p50_ms: float
    p99_ms: float
    processor_us: float
    memory_mb: float = 0.0


@dataclass(frozen=True, slots=True)
class Contender:
    """A contender, its client, and what its numbers leave out, in a sentence."""

    name: str
    client: str
    durability: Durability
    leaves_out: str
    subject: Subject = Subject.LOGS


@dataclass(frozen=True, slots=True)
class Standing:
    """All results of a contender, or why there are none."""

    contender: Contender
    did: dict[str, Sequence[Did]]
    trouble: str = ""


def described(standings: Sequence[Standing], absent: Iterable[str] = ()) -> str:
    """The table of contenders of one kind, what its numbers leave out, and who is missing for which reason."""
    remarks = [
        f"* **{standing.contender.name}** ({standing.contender.client}): {standing.contender.leaves_out}"
        for standing in standings
    ]
    missing = [
        *(
            f"* **{standing.contender.name}**, not measured: {standing.trouble}"
            for standing in standings
            if standing.trouble
        ),
        *(f"* {line}" for line in absent),
    ]
    caption = CAPTIONS[standings[0].contender.subject]
    return "\n".join([caption, "", table(standings), "", LEFT_OUT, "", *remarks, *missing, ""])


def table(standings: Sequence[Standing]) -> str:
    """One line per contender, and one cell per operation."""
    subject = standings[0].contender.subject
    operations = OPERATIONS_OF[subject]
    head = ["", DURABLE[subject], *operations.values()]
    lines = [head, ["---", "---", *["--:"] * len(operations)]]
    for standing in standings:
        who = [standing.contender.name, standing.contender.durability.value]
        cells = [_cell(standing.did.get(name, ())) for name in operations]
        lines.append([*who, *cells])
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _cell(rounds: Sequence[Did]) -> str:
    """Medians: messages per second, latencies, processor time of a message, and memory."""
    if not rounds:
        return ""
    medians = Did(*(median(values) for values in zip(*rounds, strict=True)))
    lines = [
        f"**{_rounded(medians.messages_s)}**/s",
        _latencies(medians),
        f"{shown(medians.processor_us)} µs",
        *([f"{shown(medians.memory_mb)} MB"] if medians.memory_mb else []),
    ]
    return "<br>".join(lines)


def _latencies(did: Did) -> str:
    if did.p50_ms == did.p99_ms:
        return f"{shown(did.p50_ms / 1_000)} s"
    return f"{shown(did.p50_ms)} / {shown(did.p99_ms)} ms"


def _rounded(rate: float) -> str:
    """Three significant digits: a fourth differs with every run."""
    return f"{float(f'{rate:.3g}'):,.0f}"


def as_json(one: Standing) -> dict[str, Any]:
    """Encode as JSON values."""
    return asdict(one.contender) | {
        "trouble": one.trouble,
        "did": {name: [*map(list, rounds)] for name, rounds in one.did.items()},
    }


def from_json(told: Mapping[str, Any]) -> Standing:
    """Decode what `as_json` returned."""
    contender = Contender(
        told["name"],
        told["client"],
        Durability(told["durability"]),
        told["leaves_out"],
        Subject(told["subject"]),
    )
    did = {name: [Did(*each) for each in rounds] for name, rounds in told["did"].items()}
    return Standing(contender, {**did}, told["trouble"])
