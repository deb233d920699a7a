"""Credential secrets: generation, parsing, and absence from representations."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.domain.access.credentials import (
    SESSION_PREFIX,
    TICKET_PREFIX,
    Credential,
    CredentialKind,
    IssuedCredential,
    Rights,
    could_be_id,
    covers_rates,
    digest_of,
    is_token,
    new_secret,
    new_token,
    parse_key,
)
from storage.domain.access.permissions import Policy, Role
from storage.domain.errors import ValidationFailed
from storage.domain.quotas import Rates

SCANNER = re.compile(r"\bmsk_[0-9A-Za-z]{12}_[0-9A-Za-z]{38}\b")


def test_generated_key_parses_into_id_and_secret():
    made = new_secret(CredentialKind.KEY)

    assert parse_key(made.token) == (made.id, made.secret)
    assert SCANNER.fullmatch(made.token)
    assert could_be_id(made.id)


def test_checksum_is_stable_across_versions():
    word = "msk_0123456789AB_0123456789abcdefghijklmnopqrstuv"

    assert parse_key(f"{word}2xeBay") is not None


@given(st.integers(0, 54), st.characters(codec="utf-8"))
def test_key_with_one_wrong_character_is_rejected(place, character):
    word = new_secret(CredentialKind.KEY).token
    wrong = word[:place] + character + word[place + 1 :]

    assert wrong == word or parse_key(wrong) is None


@given(st.text(max_size=80))
def test_arbitrary_text_is_not_a_key(text):
    assert parse_key(text) is None
    assert not is_token(text, TICKET_PREFIX)


def test_ticket_and_session_tokens_are_not_interchangeable():
    ticket, session = new_token(TICKET_PREFIX), new_token(SESSION_PREFIX)

    assert is_token(ticket, TICKET_PREFIX)
    assert is_token(session, SESSION_PREFIX)
    assert not is_token(ticket, SESSION_PREFIX)
    assert not is_token(ticket[:-1] + ("a" if ticket[-1] != "a" else "b"), TICKET_PREFIX)


def test_key_pair_has_aws_format():
    made = new_secret(CredentialKind.PAIR)

    assert re.fullmatch("MSAK[A-Z2-7]{16}", made.id)
    assert re.fullmatch("[0-9A-Za-z]{40}", made.token)
    assert could_be_id(made.id)


def test_secret_for_token_credential_is_rejected():
    with pytest.raises(ValidationFailed):
        new_secret(CredentialKind.TOKEN)


def test_representations_do_not_contain_secrets():
    made = new_secret(CredentialKind.PAIR)
    rights = Rights(roles=(Role.VIEWER,))
    issued = IssuedCredential(
        id=made.id,
        kind=made.kind,
        name="a",
        rights=rights,
        family=made.id,
        created_at_ms=1,
        changed_at_ms=1,
        created_by="b",
    )
    credential = Credential.of(issued, secret=made.secret.encode())

    shown = "".join(f"{one!r} {one}" for one in (made, credential, [made, credential]))

    assert made.secret not in shown
    assert "secret" not in shown


def test_credential_is_proved_only_by_complete_secret():
    made = new_secret(CredentialKind.KEY)
    credential = Credential(
        id=made.id, kind=made.kind, name="a", policy=Policy(()), digest=digest_of(made.secret)
    )
    pair = Credential(id=made.id, kind=CredentialKind.PAIR, name="a")

    assert credential.is_verified_by(made.secret)
    assert not credential.is_verified_by(made.secret[:-1])
    assert not credential.is_verified_by("")
    assert not pair.is_verified_by("")


RATE = st.none() | st.floats(0.1, 1e6)
RATES = st.none() | st.builds(
    Rates,
    calls_per_second=RATE,
    messages_per_second=RATE,
    bytes_per_second=RATE,
    burst_seconds=st.sampled_from([1.0, 10.0]),
)


@given(RATES, RATES)
def test_rates_are_covered_when_no_rate_is_higher(own, given_rates):
    fields = ("calls_per_second", "messages_per_second", "bytes_per_second")
    mine = [getattr(own, field, None) for field in fields]
    theirs = [getattr(given_rates, field, None) for field in fields]

    covered = covers_rates(own, given_rates)

    each = all(a is None or (b is not None and b <= a) for a, b in zip(mine, theirs, strict=True))
    unlimited = own is None or mine == [None] * 3
    bursts = own is None or given_rates is None or given_rates.burst_seconds <= own.burst_seconds
    assert covered == (unlimited or (each and bursts))
