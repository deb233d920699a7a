"""Audit log of every administrative call: a hash chain of entries.

    before the call   an intent ───────────────┐  the call is refused if it cannot be written
    after it          the intent becomes ────▶ entry 1 ◀── entry 2 ◀── entry 3 …    each has the hash of the one before
    the process died  the sweeper makes an entry of the intent, with the outcome `unknown`

An entry's hash is the SHA-256 of its canonical form: the entry as the API shows it, without `hash`, as JSON in UTF-8
with sorted keys and no spaces. `jq -jcS 'del(.hash)' | sha256sum` gives the same. docs/internals/security-model.md has
the steps of a call.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

import msgspec

from storage.domain import limits
from storage.domain.access.permissions import Action
from storage.domain.clock import rfc3339
from storage.domain.errors import ErrorCategory, MillstreamError

FORMAT = 2
"""The members of an entry: 1 has `door`; 2 has `protocol`, its new name, as well."""
_FORMAT_WITH_PROTOCOL = 2

FIRST_HASH = "0" * 64
"""The hash before the first entry."""

DONE = "done"
UNKNOWN = "unknown"
LOG_IN = "log_in"
"""The operation of an entry about an unauthenticated caller."""

Snapshot = dict[str, Any]
"""A definition as plain values, without secrets."""

_UNAUDITED_VERBS = frozenset(
    {"send", "receive", "peek", "put", "publish", "read", "commit", "list"}
)
_ADMINISTRATIVE = frozenset(action for action in Action if action.verb not in _UNAUDITED_VERBS)


def is_administrative(action: Action) -> bool:
    """Return whether state-changing calls that need permission for `action` are audited.

    The data plane is not.
    """
    return action in _ADMINISTRATIVE


class ApiProtocol(StrEnum):
    """API through which a call was made, or `system` for the service itself."""

    REST = "rest"
    SQS = "sqs"
    KINESIS = "kinesis"
    STS = "sts"
    WS = "ws"
    CLI = "cli"
    SYSTEM = "system"  # the service itself: maintenance that a definition asks for


class AuditedCall(msgspec.Struct, frozen=True, kw_only=True):
    """An audited call: the caller, the operation, and the address it came from.

    Texts from callers are truncated, and stripped of unprintable characters. `authenticated`: how the caller was
    authenticated. `resource`: the resource concerned, as in the native API's path, without the leading `/v1/`.
    """

    at_ms: int
    namespace: str
    principal: str
    credential: str
    authenticated: str
    address: str
    protocol: ApiProtocol = msgspec.field(name="door")  # as stored, and as hashed
    operation: str
    action: str
    resource: str
    request_id: str

    @classmethod
    def of(cls, *, at_ms: int, protocol: ApiProtocol, **texts: str) -> "AuditedCall":
        """Build the call from these texts."""
        return cls(
            at_ms=at_ms, protocol=protocol, **{name: _plain(text) for name, text in texts.items()}
        )


class AuditRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of the log.

    `before`, `after`: the part of a definition that the call changed; None: no definition.
    `format`: which members the entry has, and its hash covers.
    """

    seq: int
    format: int = FORMAT
    call: AuditedCall
    outcome: str
    before: Snapshot | None
    after: Snapshot | None
    prev_hash: str
    hash: str

    def fields(self) -> Snapshot:
        """Return the entry as the API shows it."""
        call = msgspec.to_builtins(self.call)
        at_ms = call.pop("at_ms")
        if self.format >= _FORMAT_WITH_PROTOCOL:
            call["protocol"] = call["door"]
        return {
            "seq": self.seq,
            "called_at": rfc3339(at_ms),
            **call,
            "outcome": self.outcome,
            "before": self.before,
            "after": self.after,
            "prev_hash": self.prev_hash,
            "hash": self.hash,
        }


class AuditFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Filter of entries. `resource` includes everything below it; `until_ms` is exclusive.

    `operation` is a name, or the beginning of names in any case, followed by `*`: `delete*` selects those of all protocols.
    """

    namespace: str | None = None
    principal: str | None = None
    action: str | None = None
    operation: str | None = None
    resource: str | None = None
    since_ms: int | None = None
    until_ms: int | None = None

    def key_values(self) -> tuple[str | int | None, ...]:
        """Return the filter as values, for a cursor that is bound to it."""
        return msgspec.structs.astuple(self)


def sealed(
    seq: int,
    *,
    prev_hash: str,
    call: AuditedCall,
    outcome: str,
    before: Snapshot | None,
    after: Snapshot | None,
) -> AuditRecord:
    """Return the entry that follows the one with `prev_hash`."""
    entry = AuditRecord(
        seq=seq,
        call=call,
        outcome=outcome,
        before=before,
        after=after,
        prev_hash=prev_hash,
        hash="",
    )
    return msgspec.structs.replace(entry, hash=hash_of(entry.fields()))


def hash_of(fields: Mapping[str, Any]) -> str:
    """Compute the hash that an entry, as the API shows it, must have."""
    content = {name: value for name, value in fields.items() if name != "hash"}
    return hashlib.sha256(canonical(content).encode()).hexdigest()


def canonical(value: Any) -> str:
    """Encode as canonical JSON: sorted keys, no spaces."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


class AuditFault(msgspec.Struct, frozen=True):
    """First entry that was altered, and the evidence for it."""

    seq: int
    detail: str


class Chain:
    """Verifier of the hash chain: walks entries, oldest first, to the first altered one.

    `whole`: every entry is passed; otherwise only some are, and each is checked by itself. `recorded`: the number and
    the hash of an entry as recorded earlier elsewhere, which reveals a log that was rewritten throughout.
    """

    def __init__(self, *, whole: bool, recorded: tuple[int, str] | None = None) -> None:
        self.whole = whole
        self._recorded = recorded
        self.seq = 0
        """The last entry checked."""
        self.hash = FIRST_HASH
        """Its hash."""

    def check(self, entries: Iterable[Mapping[str, Any]]) -> AuditFault | None:
        """Check the next entries and return the first fault, if any."""
        for fields in entries:
            if fault := self._fault(fields):
                return fault
            self.seq, self.hash = fields["seq"], fields["hash"]
        return None

    def end(self) -> AuditFault | None:
        """Return a fault if the log ends before the entry that was recorded elsewhere."""
        if self._recorded is not None and self.seq < self._recorded[0]:
            return AuditFault(
                self.seq + 1, f"is missing: the log previously had an entry {self._recorded[0]}"
            )
        return None

    def _fault(self, fields: Mapping[str, Any]) -> AuditFault | None:
        seq = fields["seq"]
        if self.whole and seq != self.seq + 1:
            if seq <= self.seq:
                return AuditFault(seq, "is duplicated or out of order")
            return AuditFault(self.seq + 1, f"is missing: entry {seq} follows entry {self.seq}")
        if self.whole and fields["prev_hash"] != self.hash:
            return AuditFault(
                seq, "does not match the hash of the previous entry, which was altered"
            )
        if hash_of(fields) != fields["hash"]:
            return AuditFault(seq, "was altered: its hash does not match its content")
        if self._recorded and seq == self._recorded[0] and fields["hash"] != self._recorded[1]:
            return AuditFault(seq, "does not match the recorded entry: the log was rewritten")
        return None


def outcome_of(error: Exception) -> str:
    """Return the audit outcome of a call that raised this error.

    An error that is not Millstream's counts as an internal failure.
    """
    if not isinstance(error, MillstreamError):
        return outcome("failed", "internal_error")
    match error.code.category:
        case ErrorCategory.UNKNOWN_OUTCOME:
            return UNKNOWN
        case ErrorCategory.UNAVAILABLE | ErrorCategory.INTERNAL:
            return outcome("failed", error.code.value)
        case _:
            return outcome("refused", error.code.value)


def outcome(word: str, code: str) -> str:
    """Format an outcome, for example `refused:forbidden`."""
    return f"{word}:{_plain(code)}"


def changes(
    before: Snapshot | None, after: Snapshot | None
) -> tuple[Snapshot | None, Snapshot | None]:
    """Return the differences between two versions of a definition.

    All of it if there was none on one side, None if nothing differs.
    """
    if before is None or after is None:
        return before, after
    names = [name for name in before | after if before.get(name) != after.get(name)]
    return (_of(before, names), _of(after, names)) if names else (None, None)


def _of(shown: Snapshot, names: Iterable[str]) -> Snapshot:
    return {name: shown[name] for name in names if name in shown}


def _plain(text: str) -> str:
    printable = "".join(character if character.isprintable() else "�" for character in text)
    return printable[: limits.AUDIT_TEXT_CHARACTERS_MAX]
