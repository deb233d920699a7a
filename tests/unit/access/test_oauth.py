"""OAuth clients of webhooks: validation, and what becomes of their secret."""

import pytest
from msgspec.structs import replace

from storage.domain.access.oauth import (
    OAuthClient,
    WebhookCredentials,
    hide_secret,
    keep_secret,
    redact_secret,
)
from storage.domain.definitions import OTHER_HIDDEN_VALUE
from storage.domain.errors import ValidationFailed
from storage.domain.webhooks import Source, WebhookSpec

CLIENT = OAuthClient(
    token_url="https://login.example/token", client_id="shop", client_secret="opensesame"
)
STORED = WebhookCredentials(oauth=CLIENT)
HIDDEN = STORED.with_secret(None)


def with_client(**changes: object) -> WebhookCredentials:
    return WebhookCredentials(oauth=replace(CLIENT, **changes))


@pytest.mark.parametrize(
    ("changes", "pointer", "code"),
    [
        ({"client_id": ""}, "client_id", "invalid"),
        ({"client_id": "a\nb"}, "client_id", "invalid"),
        ({"client_secret": ""}, "client_secret", "invalid"),
        ({"client_secret": "x" * 4097}, "client_secret", "invalid"),
        ({"scope": "a  b"}, "scope", "invalid"),
        ({"scope": 'a"b'}, "scope", "invalid"),
        ({"parameters": {"grant_type": "password"}}, "parameters/grant_type", "not_allowed"),
        ({"parameters": {"scope": "a"}}, "parameters/scope", "not_allowed"),
        ({"parameters": {"": "a"}}, "parameters", "invalid"),
        ({"parameters": {"audience": ""}}, "parameters/audience", "invalid"),
        ({"parameters": {f"p{n}": "a" for n in range(33)}}, "parameters", "too_many"),
    ],
)
def test_fault_of_client_has_pointer(changes, pointer, code):
    [fault] = with_client(**changes).oauth.faults()

    assert (fault.pointer, fault.code) == (f"/credentials/oauth/{pointer}", code)


def test_client_with_every_field_is_valid():
    parameters = {"audience": "https://shop.example", "resource": "a b"}
    assert with_client(scope="read write", parameters=parameters).oauth.faults() == []


def test_authorization_header_conflicts_with_credentials():
    headers = (("Authorization", "Bearer 1"),)
    spec = WebhookSpec(
        source=Source.of("queue:orders"),
        url="https://shop.example/",
        headers=headers,
        credentials=STORED,
    )

    with pytest.raises(ValidationFailed) as refused:
        spec.check()

    [fault] = refused.value.faults
    assert (fault.pointer, fault.code) == ("/headers/Authorization", "conflict")


def test_secret_is_not_printed():
    assert "opensesame" not in repr(STORED)
    assert "opensesame" not in f"{STORED.oauth}"


@pytest.mark.parametrize(
    ("requested", "stored", "kept"),
    [
        (None, STORED, None),
        (HIDDEN, STORED, STORED),
        (
            with_client(client_secret=None, scope="read"),
            STORED,
            with_client(scope="read"),
        ),
        (with_client(client_secret="other"), STORED, with_client(client_secret="other")),
        (STORED, None, STORED),
    ],
)
def test_secret_is_kept_when_it_is_omitted(requested, stored, kept):
    assert keep_secret(requested, stored) == kept


@pytest.mark.parametrize(
    ("change", "stored"),
    [
        ({}, None),
        ({"token_url": "https://elsewhere.example/token"}, STORED),
        ({"client_id": "other"}, STORED),
    ],
)
def test_secret_is_required_for_another_client(change, stored):
    """A caller who does not know the secret must not have it sent elsewhere."""
    with pytest.raises(ValidationFailed) as refused:
        keep_secret(with_client(client_secret=None, **change), stored)

    [fault] = refused.value.faults
    assert (fault.pointer, fault.code) == ("/credentials/oauth/client_secret", "required")


def test_replaced_secret_is_marked():
    assert redact_secret(STORED, with_client(client_secret="other")) == STORED.with_secret(
        OTHER_HIDDEN_VALUE
    )
    assert redact_secret(STORED, STORED) == redact_secret(STORED, None) == HIDDEN
    assert redact_secret(None, STORED) is None
    assert hide_secret(STORED) == HIDDEN
