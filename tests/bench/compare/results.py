"""Results of contenders: messages per second, and 99th percentiles of calls."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from tests.bench.ratios import shown

OPERATIONS = {
    "send": "send one message",
    "work": "receive and acknowledge, 10 at a time",
    "produce": "append 500 records",
    "read": "read 500 records",
}


@dataclass(frozen=True, slots=True)
class Did:
    """One round of an operation."""

    messages_s: float
    p99_ms: float


@dataclass(frozen=True, slots=True)
class Contender:
    """A contender, and the durability of its acknowledged messages."""

    name: str
    client: str
    durability: str


@dataclass(frozen=True, slots=True)
class Standing:
    """All results of a contender, or why there are none."""

    contender: Contender
    did: dict[str, Sequence[Did]]
    trouble: str = ""


def described(standings: Sequence[Standing]) -> str:
    """The table, and reasons for missing contenders."""
    troubles = [
        f"* {standing.contender.name}: {standing.trouble}"
        for standing in standings
        if standing.trouble
    ]
    return "\n".join([table(standings), *([""] if troubles else []), *troubles, ""])


def table(standings: Iterable[Standing]) -> str:
    """One line per contender: messages per second and 99th percentile by operation."""
    head = ["", "client", "an acknowledged message is", *OPERATIONS.values()]
    lines = [head, ["---", "---", "---", *["--:"] * len(OPERATIONS)]]
    for standing in standings:
        who = [standing.contender.name, standing.contender.client, standing.contender.durability]
        cells = [_cell(standing.did.get(name, ())) for name in OPERATIONS]
        lines.append([*who, *cells])
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _cell(rounds: Sequence[Did]) -> str:
    if not rounds:
        return ""
    rate, p99 = (
        median(getattr(each_round, name) for each_round in rounds)
        for name in ("messages_s", "p99_ms")
    )
    return f"{shown(rate)}/s · {shown(p99)} ms"


def as_json(one: Standing) -> dict[str, Any]:
    """Encode as JSON values."""
    return {
        "name": one.contender.name,
        "client": one.contender.client,
        "durability": one.contender.durability,
        "trouble": one.trouble,
        "did": {
            name: [[each.messages_s, each.p99_ms] for each in rounds]
            for name, rounds in one.did.items()
        },
    }


def from_json(told: Mapping[str, Any]) -> Standing:
    """Decode what `as_json` returned."""
    contender = Contender(told["name"], told["client"], told["durability"])
    did = {name: [Did(*each) for each in rounds] for name, rounds in told["did"].items()}
    return Standing(contender, {**did}, told["trouble"])
