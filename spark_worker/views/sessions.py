"""Sessions of a batch, merged with the stored ones of the same key.

    batch     12:00 ────── 12:10            12:30 ── 12:36
    stored            12:05 ────── 12:20
    merged    12:00 ────────────── 12:20    12:30 ── 12:36

The session is the last part of its row's key, so the row of a session that grows replaces the former ones.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

import msgspec

from spark_worker.views.executor import MergeInput, Partials, State
from storage.domain.views.plan import KeyColumn
from storage.domain.views.row_key import SessionKey, encode_key, key_values, session_key
from storage.domain.views.sources import Sources, merge_sources
from storage.views.scans import StoredState

_WINDOW = '{"start":'
"""Begin of the window in the JSON of a key; inside of a text its quotes would be escaped."""


class _Session(NamedTuple):
    """Session with what it has.

    `others`: the encoded key without the session; `key`: the whole one, as JSON.
    """

    others: bytes
    start: str
    end: str
    key: str
    states: tuple[State, ...] = ()
    stored: tuple[bytes, ...] = ()
    sources: Sources = {}


def session_keys(batch: Partials, columns: Sequence[KeyColumn]) -> list[SessionKey]:
    """Return the keys of a batch, in the order of its states."""
    return [session_key(encode_key(key_values(one.key), columns)) for one in batch.states]


def merge_sessions(
    batch: Partials,
    keys: Sequence[SessionKey],
    stored: Mapping[bytes, StoredState],
    columns: Sequence[KeyColumn],
) -> MergeInput:
    """Merge the sessions of a batch, and the stored ones that overlap them.

    `keys`: those of the batch, by `session_keys`.
    """
    pairs = zip(batch.states, keys, strict=True)
    parts = [_Session(*key, state.key, (state,)) for state, key in pairs]
    json_keys = {part.others: part.key for part in parts}
    for key, sources in batch.sources.items():  # its sessions are those of a shard
        own = session_key(encode_key(key_values(key), columns))
        parts.append(_Session(*own, key, sources=sources))
    for stored_key, row in stored.items():
        own, state = session_key(stored_key), State("", row.state, row.window_end_ms)
        parts.append(_Session(*own, json_keys[own.others], (state,), (stored_key,), row.sources))
    parts.sort(key=lambda part: part[:3])
    merged = [
        session
        for _, of_key in groupby(parts, key=lambda part: part.others)
        for session in _joined(of_key)
    ]
    encoded = [(encode_key(key_values(one.key), columns), one) for one in merged]
    return MergeInput(
        [state._replace(key=one.key) for one in merged for state in one.states],
        {one.key: key for key, one in encoded},
        {key: one.sources for key, one in encoded},
        {key: tuple(old for old in one.stored if old != key) for key, one in encoded},
    )


def is_in_session(key: str, row_key: bytes, columns: Sequence[KeyColumn]) -> bool:
    """Return whether a record belongs to the session of a row; `key` is its own session's."""
    own, whole = session_key(encode_key(key_values(key), columns)), session_key(row_key)
    return own.others == whole.others and whole.start <= own.start and own.end <= whole.end


def _joined(parts: Iterator[_Session]) -> Iterator[_Session]:
    """Join the sessions of one key, in the order of their starts, where they overlap or touch."""
    current = next(parts)
    for part in parts:
        if part.start > current.end:
            yield _with_window(current)
            current = part
        else:
            current = current._replace(
                end=max(current.end, part.end),
                states=current.states + part.states,
                stored=current.stored + part.stored,
                sources=merge_sources([current.sources, part.sources]),
            )
    yield _with_window(current)


def _with_window(session: _Session) -> _Session:
    """Return a session whose key has its start and its end."""
    window = msgspec.json.encode({"start": session.start, "end": session.end}).decode()
    key = session.key[: session.key.rindex(_WINDOW)] + window + "}"
    return session._replace(key=key)
