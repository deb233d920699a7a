"""What is kept of every administrative call, so that whoever did something is found later.

    before the call   an intent ───────────────┐  refused when it cannot be written
    after it          the intent goes, and ─▶ entry 1 ◀── entry 2 ◀── entry 3 …     each holds the hash of the one before
    the process died  a sweep makes an entry of the intent, with the outcome `unknown`

An entry's hash is the SHA-256 of its canonical form: the entry as the API shows it, without `hash`, as JSON in UTF-8
with sorted keys and no spaces. `jq -jcS 'del(.hash)' | sha256sum` gives the same.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

import msgspec

from storage.domain import limits
from storage.domain.access.permissions import Action
from storage.domain.errors import ErrorCode, MillstreamError

FIRST_HASH = "0" * 64
"""The hash before the first entry."""

DONE = "done"
UNKNOWN = "unknown"
LOG_IN = "log_in"
"""The operation of an entry about a caller whom nobody knows."""

Shown = dict[str, Any]
"""A definition, as plain values; nothing secret."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ADMINISTRATIVE = frozenset(
    {
        Action.QUEUE_PURGE,
        Action.QUEUE_REDRIVE,
        Action.QUEUE_MANAGE,
        Action.STREAM_MANAGE,
        Action.GROUP_RESET,
        Action.GROUP_MANAGE,
        Action.REPLAY_RUN,
        Action.JOB_MANAGE,
        Action.WEBHOOK_MANAGE,
        Action.SOCKET_CLOSE,
        Action.ADMIN_KEYS,
        Action.ADMIN_NAMESPACES,
    }
)


def is_administrative(action: Action) -> bool:
    """Whether calls that need the right to `action` and change something are audited: not the data plane."""
    return action in _ADMINISTRATIVE


class Door(StrEnum):
    """The way a call came."""

    REST = "rest"
    SQS = "sqs"
    KINESIS = "kinesis"
    STS = "sts"
    WS = "ws"
    CLI = "cli"


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A call: who asked for what, from where. Texts of callers are cut, and stripped of what does not print.

    `authenticated`: how the caller was known. `resource`: what it was about, as the native API's path has it,
    without the leading `/v1/`.
    """

    at_ms: int
    namespace: str
    principal: str
    credential: str
    authenticated: str
    address: str
    door: Door
    operation: str
    action: str
    resource: str
    request_id: str

    @classmethod
    def of(cls, *, at_ms: int, door: Door, **texts: str) -> "Asked":
        """The call of these texts."""
        return cls(at_ms=at_ms, door=door, **{name: _plain(text) for name, text in texts.items()})


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the log. `before`, `after`: what the call changed, of a definition; None: there was none."""

    seq: int
    asked: Asked
    outcome: str
    before: Shown | None
    after: Shown | None
    prev_hash: str
    hash: str

    def fields(self) -> Shown:
        """The entry as the API shows it."""
        asked = msgspec.to_builtins(self.asked)
        at_ms = asked.pop("at_ms")
        return {
            "seq": self.seq,
            "called_at": _rfc3339(at_ms),
            **asked,
            "outcome": self.outcome,
            "before": self.before,
            "after": self.after,
            "prev_hash": self.prev_hash,
            "hash": self.hash,
        }


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """Which entries are asked for. `resource` stands for what is below it too; `until_ms` is not in it."""

    namespace: str | None = None
    principal: str | None = None
    action: str | None = None
    resource: str | None = None
    since_ms: int | None = None
    until_ms: int | None = None

    def told(self) -> tuple[str | int | None, ...]:
        """What is asked, for a cursor that is bound to it."""
        return msgspec.structs.astuple(self)


def sealed(
    seq: int,
    prev_hash: str,
    asked: Asked,
    outcome: str,
    before: Shown | None,
    after: Shown | None,
) -> Entry:
    """The entry that comes after the one with `prev_hash`."""
    entry = Entry(
        seq=seq,
        asked=asked,
        outcome=outcome,
        before=before,
        after=after,
        prev_hash=prev_hash,
        hash="",
    )
    return msgspec.structs.replace(entry, hash=hash_of(entry.fields()))


def hash_of(fields: Mapping[str, Any]) -> str:
    """The hash that an entry, as the API shows it, must have."""
    said = {name: value for name, value in fields.items() if name != "hash"}
    return hashlib.sha256(canonical(said).encode()).hexdigest()


def canonical(value: Any) -> str:
    """JSON of one form only: sorted keys, no spaces."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


class Fault(msgspec.Struct, frozen=True):
    """The first entry that is not what was written, and what is wrong with it."""

    seq: int
    detail: str


class Chain:
    """Walks entries, the oldest first, and finds the first that is not what was written.

    `whole`: every entry is shown; else only some are, and each is looked at alone. `known`: the number and the hash
    of an entry as somebody noted it earlier, by which a log that was written anew throughout gives itself away.
    """

    def __init__(self, *, whole: bool, known: tuple[int, str] | None = None) -> None:
        self.whole = whole
        self._known = known
        self.seq = 0
        """The last entry that was looked at."""
        self.hash = FIRST_HASH
        """Its hash."""

    def look(self, entries: Iterable[Mapping[str, Any]]) -> Fault | None:
        """The fault among the entries that come next."""
        for fields in entries:
            if fault := self._fault(fields):
                return fault
            self.seq, self.hash = fields["seq"], fields["hash"]
        return None

    def end(self) -> Fault | None:
        """The fault of what is not there: the log ends before the entry that somebody noted."""
        if self._known is not None and self.seq < self._known[0]:
            return Fault(self.seq + 1, f"is missing: the log once had an entry {self._known[0]}")
        return None

    def _fault(self, fields: Mapping[str, Any]) -> Fault | None:
        seq = fields["seq"]
        if self.whole and seq != self.seq + 1:
            if seq <= self.seq:
                return Fault(seq, "is there twice, or out of order")
            return Fault(self.seq + 1, f"is missing: entry {seq} follows entry {self.seq}")
        if self.whole and fields["prev_hash"] != self.hash:
            return Fault(seq, "does not follow the entry before it, which is not the one it was")
        if hash_of(fields) != fields["hash"]:
            return Fault(seq, "was changed: its hash is of something else")
        if self._known and seq == self._known[0] and fields["hash"] != self._known[1]:
            return Fault(seq, "is not the one that was noted: the log was written anew")
        return None


def outcome_of(error: Exception) -> str:
    """How a call ended that raised one of ours; anything else has failed for a reason of our own."""
    if not isinstance(error, MillstreamError):
        return outcome("failed", "internal_error")
    if error.code is ErrorCode.STORAGE_TIMEOUT:
        return UNKNOWN
    return outcome("failed" if error.code in _OURS else "refused", error.code.value)


_OURS = frozenset(
    {
        ErrorCode.STORAGE_UNAVAILABLE,
        ErrorCode.STORAGE_FULL,
        ErrorCode.STORAGE_BUSY,
        ErrorCode.ARCHIVE_DAMAGED,
        ErrorCode.SECRET_UNREADABLE,
    }
)


def outcome(word: str, code: str) -> str:
    """`refused:forbidden`, for one."""
    return f"{word}:{_plain(code)}"


def changes(before: Shown | None, after: Shown | None) -> tuple[Shown | None, Shown | None]:
    """What differs between two looks at a definition: all of it where there was none on one side, None where nothing does."""
    if before is None or after is None:
        return before, after
    names = [name for name in before | after if before.get(name) != after.get(name)]
    return (_of(before, names), _of(after, names)) if names else (None, None)


def _of(shown: Shown, names: Iterable[str]) -> Shown:
    return {name: shown[name] for name in names if name in shown}


def _plain(text: str) -> str:
    kept = "".join(character if character.isprintable() else "�" for character in text)
    return kept[: limits.AUDIT_TEXT_CHARACTERS_MAX]


def _rfc3339(ms: int) -> str:
    return (_EPOCH + timedelta(milliseconds=ms)).isoformat(timespec="milliseconds")[:-6] + "Z"
