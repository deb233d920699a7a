"""Spreads of in-memory routes: members of a target, of which each message goes to one."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from math import log
from typing import Any

from millstream_client.testing.problems import invalid

Target = dict[str, Any]

KINDS = ("queue", "stream", "topic")
MEMBERS_MIN, MEMBERS_MAX = 2, 32
WEIGHT_MAX = 1_000
BY = ("key", "subject", "random")


def named_targets(target: Target) -> Sequence[Target]:
    """Return the members of a spread, or the target itself."""
    return target.get("spread") or [target]


def label_of(target: Target) -> str:
    """Return kind and name of a target, such as `queue:billing`."""
    return next((f"{kind}:{target[kind]}" for kind in KINDS if target.get(kind)), "")


def completed(target: Target) -> Target:
    """Return a spread with its defaults."""
    members = [_completed_member(member) for member in target["spread"]]
    return {**dict.fromkeys(KINDS), "spread": members, "by": target.get("by") or "key"}


def _completed_member(member: Target) -> Target:
    names = {kind: member[kind] for kind in KINDS if member.get(kind) is not None}
    return {**names, "weight": member.get("weight", 1)}


def choose(members: Sequence[Target], text: str) -> Target:
    """Return the member of a text, by the weighted rendezvous hash of the service."""
    return min(members, key=lambda member: _variate(member, text))


def _variate(member: Target, text: str) -> float:
    digest = blake2b(f"{label_of(member)}\0{text}".encode(), digest_size=8).digest()
    drawn = int.from_bytes(digest, "big") >> 11
    return -log((drawn + 0.5) * 2.0**-53) / float(member["weight"])


def check_spread(target: Target) -> None:
    """Check the members of a spread. Raises Problem."""
    members = target["spread"]
    if not MEMBERS_MIN <= len(members) <= MEMBERS_MAX:
        detail = f"A spread has {MEMBERS_MIN} to {MEMBERS_MAX} members"
        raise invalid("/target/spread", detail, "out_of_range")
    if target.get("by") not in {None, *BY}:
        raise invalid("/target/by", "Expected 'key', 'subject' or 'random'", "invalid")
    labels: set[str] = set()
    for number, member in enumerate(members):
        pointer = f"/target/spread/{number}"
        _check_member(member, pointer)
        if label_of(member) in labels:
            raise invalid(pointer, "The target is a member already", "duplicate")
        labels.add(label_of(member))


def _check_member(member: Target, pointer: str) -> None:
    """Check a member. Raises Problem."""
    given = {name for name, value in member.items() if value is not None}
    if "url" in given:
        detail = "A URL cannot be a member; let a queue be one, and a webhook post its messages"
        raise invalid(f"{pointer}/url", detail, "not_supported")
    for name in given - {*KINDS, "weight"}:
        raise invalid(f"{pointer}/{name}", f"Unknown field {name!r}", "unknown_field")
    if len(given & {*KINDS}) != 1:
        raise invalid(pointer, "Specify exactly one of queue, stream and topic", "exclusive")
    _check_weight(member.get("weight", 1), f"{pointer}/weight")


def _check_weight(weight: int, pointer: str) -> None:
    if not 1 <= weight <= WEIGHT_MAX:
        raise invalid(pointer, f"A weight is 1 to {WEIGHT_MAX}", "out_of_range")
