"""Request tokens: only the service makes them, and each for one namespace."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.domain import limits
from storage.domain.errors import RequestNotFound
from storage.domain.requests.token import (
    NONCE_BYTES,
    RequestId,
    RequestToken,
    deadline_of,
    nonce_of,
)

SECRET = bytes(32)
TOKENS = st.builds(
    RequestToken,
    deadline_ms=st.integers(0, 2**48 - 1),
    replies_max=st.integers(1, limits.REPLIES_MAX),
    reply_ttl_ms=st.integers(1, 3600).map(lambda seconds: seconds * limits.SECOND_MS),
    nonce=st.binary(min_size=NONCE_BYTES, max_size=NONCE_BYTES),
    is_repeatable=st.booleans(),
)
BASE64URL = string.ascii_letters + string.digits + "-_"


@given(token=TOKENS)
def test_token_is_read_as_it_was_signed(token):
    request = RequestId(token.sign("acme", SECRET), "acme")

    assert RequestToken.verify(request, SECRET) == token
    assert deadline_of(request.name) == token.deadline_ms
    assert request.nonce == token.nonce


@given(token=TOKENS, place=st.integers(0, 40), character=st.sampled_from(BASE64URL))
def test_changed_token_is_refused(token, place, character):
    signed = token.sign("acme", SECRET)
    forged = signed[:place] + character + signed[place + 1 :]

    if forged != signed:
        with pytest.raises(RequestNotFound):
            RequestToken.verify(RequestId(forged, "acme"), SECRET)


@given(token=TOKENS)
def test_token_is_refused_in_other_namespace_or_deployment(token):
    signed = token.sign("acme", SECRET)

    with pytest.raises(RequestNotFound):
        RequestToken.verify(RequestId(signed, "other"), SECRET)
    with pytest.raises(RequestNotFound):
        RequestToken.verify(RequestId(signed, "acme"), b"other")


@pytest.mark.parametrize("text", ["a", "a" * 41, "a" * 43, "." * 42, "a" * 42])
def test_text_that_is_no_token_is_refused(text):
    with pytest.raises(RequestNotFound):
        RequestToken.verify(RequestId(text, "acme"), SECRET)


def test_nonce_depends_on_key_resource_and_secret():
    nonces = {
        nonce_of(key, resource, secret)
        for key in ("k", "l")
        for resource in ("acme/queues/a", "acme/queues/b")
        for secret in (SECRET, b"other")
    }

    assert len(nonces) == 8
    assert nonce_of("k", "acme/queues/a", SECRET) in nonces
