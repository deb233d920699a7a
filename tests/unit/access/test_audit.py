"""Audit entries, and verification of the hash chain that links them."""

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.domain import limits
from storage.domain.access.audit import (
    FIRST_HASH,
    ApiProtocol,
    AuditedCall,
    Chain,
    canonical,
    changes,
    hash_of,
    is_administrative,
    outcome_of,
    sealed,
)
from storage.domain.access.permissions import GRANTS_OF, Action, Role
from storage.domain.errors import (
    Forbidden,
    OutcomeUnknown,
    PreconditionFailed,
    StorageUnavailable,
)

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def test_data_plane_actions_are_not_administrative():
    data_plane = {
        action
        for role in (Role.PRODUCER, Role.CONSUMER, Role.VIEWER)
        for action in Action
        if GRANTS_OF[role].names_action(action)
    }

    administrative = {action for action in Action if is_administrative(action)}

    assert administrative.isdisjoint(data_plane)
    reads = {Action.QUEUE_PEEK, Action.AUDIT_READ, Action.STORE_READ}
    assert administrative | data_plane | reads == set(Action)


@given(st.dictionaries(st.text(), PLAIN, max_size=4))
def test_canonical_form_survives_json_round_trip(shown):
    there_and_back = json.loads(json.dumps(shown))

    assert canonical(there_and_back) == canonical(shown)


def test_entry_hash_can_be_recomputed_from_its_json():
    [entry] = entries(1)
    fields = entry.fields()
    printed_fields = {name: value for name, value in fields.items() if name != "hash"}

    line = json.dumps(printed_fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False)

    assert entry.hash == hashlib.sha256(line.encode()).hexdigest() == hash_of(fields)


def test_unchanged_chain_has_no_fault():
    chain = Chain(whole=True)

    fault = chain.check(entry.fields() for entry in entries(5))

    assert (fault, chain.end(), chain.seq) == (None, None, 5)


@given(
    st.integers(0, 4), st.sampled_from(["principal", "resource", "outcome", "called_at", "after"])
)
def test_changed_entry_is_first_fault(index, field):
    shown = [entry.fields() for entry in entries(5)]
    shown[index][field] = "changed"

    fault = Chain(whole=True).check(shown)

    assert fault is not None
    assert fault.seq == index + 1


@given(st.integers(0, 3))
def test_missing_entry_is_detected_by_next_entry(index):
    shown = [entry.fields() for entry in entries(5)]
    del shown[index]

    fault = Chain(whole=True).check(shown)

    assert fault is not None
    assert (fault.seq, "missing" in fault.detail) == (index + 1, True)


def test_swapped_entries_are_detected_even_when_renumbered():
    shown = [entry.fields() for entry in entries(4)]
    shown[1]["seq"], shown[2]["seq"] = 3, 2
    shown[1], shown[2] = shown[2], shown[1]

    fault = Chain(whole=True).check(shown)

    assert fault is not None
    assert fault.seq == 2


def test_rewritten_log_is_detected_by_recorded_hash():
    entry = entries(3)[-1]
    anew = entries(5, principal="somebody else")

    fault = Chain(whole=True, recorded=(entry.seq, entry.hash)).check(one.fields() for one in anew)

    assert fault is not None
    assert (fault.seq, "rewritten" in fault.detail) == (3, True)


def test_truncated_log_is_detected_by_recorded_sequence_number():
    recorded_entry = entries(5)[-1]
    chain = Chain(whole=True, recorded=(recorded_entry.seq, recorded_entry.hash))

    assert chain.check(entry.fields() for entry in entries(4)) is None

    fault = chain.end()
    assert fault is not None
    assert fault.seq == 5


def test_partial_view_verifies_each_entry_by_itself():
    shown = [entry.fields() for entry in entries(5)][1::2]
    assert Chain(whole=False).check(shown) is None

    shown[1]["principal"] = "changed"

    fault = Chain(whole=False).check(shown)
    assert fault is not None
    assert fault.seq == 4


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (Forbidden(), "refused:forbidden"),
        (PreconditionFailed(), "refused:precondition_failed"),
        (StorageUnavailable(), "failed:storage_unavailable"),
        (OutcomeUnknown(), "unknown"),
        (RuntimeError("a bug"), "failed:internal_error"),
    ],
)
def test_outcome_names_refusal_failure_or_unknown(error, outcome):
    assert outcome_of(error) == outcome


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (None, {"a": 1}, (None, {"a": 1})),
        ({"a": 1}, None, ({"a": 1}, None)),
        ({"a": 1, "b": 2}, {"a": 1, "b": 3}, ({"b": 2}, {"b": 3})),
        ({"a": 1}, {"a": 1, "b": 3}, ({}, {"b": 3})),
        ({"a": 1}, {"a": 1}, (None, None)),
        (None, None, (None, None)),
    ],
)
def test_changes_hold_only_fields_that_differ(before, after, told):
    assert changes(before, after) == told


@given(st.text())
def test_caller_text_is_truncated_and_printable(text):
    asked = asked_for(resource=text)

    assert asked.resource.isprintable()
    assert len(asked.resource) <= limits.AUDIT_TEXT_CHARACTERS_MAX


def asked_for(**texts):
    request = {
        "namespace": "default",
        "principal": "ada",
        "credential": "k1",
        "authenticated": "api_key",
        "address": "127.0.0.1",
        "operation": "delete_queue",
        "action": "queue:manage",
        "resource": "queues/orders",
        "request_id": "r",
    }
    return AuditedCall.of(at_ms=1_700_000_000_123, protocol=ApiProtocol.REST, **(request | texts))


def entries(count, **texts):
    made = []
    prev_hash = FIRST_HASH
    for seq in range(1, count + 1):
        asked = asked_for(request_id=f"r{seq}", **texts)
        made.append(
            sealed(
                seq,
                prev_hash=prev_hash,
                call=asked,
                outcome="done",
                before=None,
                after={"delay_ms": seq},
            )
        )
        prev_hash = made[-1].hash
    return made
