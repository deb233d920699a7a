"""Receipt handles: encoding, and refusal of what is not a handle of the log."""

from base64 import urlsafe_b64decode, urlsafe_b64encode

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.domain.names import new_log_id
from storage.domain.queues.receipt_handle import ReceiptHandle, decode_handles, encode_handles

LOG = "00ff00ff00ff00ff"
NUMBERS = st.integers(0, 2**53 - 1)
DELIVERIES = st.tuples(NUMBERS, NUMBERS, st.integers(1, 10**6), NUMBERS)
URL_SAFE = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")


def short(log_id: str, handle: ReceiptHandle) -> str:
    """Return a handle with numbers as short as they can be, as versions before wrote it."""
    fields = (log_id, handle.offset, handle.arrival_ms, handle.delivery, handle.received_ms)
    return urlsafe_b64encode(msgspec.msgpack.encode(fields)).decode().rstrip("=")


@given(st.lists(DELIVERIES, max_size=12))
def test_handles_round_trip(deliveries):
    handles = encode_handles(LOG, deliveries)

    assert decode_handles(LOG, handles) == [ReceiptHandle(*one) for one in deliveries]
    assert all(URL_SAFE.issuperset(handle) for handle in handles)
    assert len(set(handles)) == len(set(deliveries))


@given(st.text(max_size=80), DELIVERIES)
def test_arbitrary_text_is_not_a_handle(garbage, delivery):
    [handle] = encode_handles(LOG, [delivery])

    assert decode_handles(LOG, [garbage, handle]) == [None, ReceiptHandle(*delivery)]


@given(DELIVERIES, st.integers(0, 71), st.sampled_from("=+ é\n.*"))
def test_handle_with_foreign_character_spoils_no_other(delivery, place, character):
    [handle] = encode_handles(LOG, [delivery])
    damaged = handle[:place] + character + handle[place + 1 :]
    first, second, third = decode_handles(LOG, [handle, damaged, handle])

    assert first == third == ReceiptHandle(*delivery)
    assert second is None or character == "+"


def test_handle_of_other_queue_is_refused():
    deliveries = [(1, 2, 3, 4)]
    [own], [other] = encode_handles(LOG, deliveries), encode_handles(new_log_id(), deliveries)

    assert decode_handles(LOG, [other, own]) == [None, ReceiptHandle(1, 2, 3, 4)]


@given(DELIVERIES)
def test_handles_with_short_numbers_are_read(delivery):
    handle = ReceiptHandle(*delivery)
    [present] = encode_handles(LOG, [delivery])

    assert decode_handles(LOG, [short(LOG, handle), present]) == [handle, handle]
    assert decode_handles(LOG, [short(new_log_id(), handle)]) == [None]


@given(DELIVERIES)
def test_versions_before_read_the_handle(delivery):
    [handle] = encode_handles(LOG, [delivery])

    assert msgspec.msgpack.decode(urlsafe_b64decode(handle)) == [LOG, *delivery]


@pytest.mark.parametrize("handles", [[], [""], ["", ""]])
def test_empty_handles_are_refused(handles):
    assert decode_handles(LOG, handles) == [None] * len(handles)
