"""Signatures of providers, with the vectors of their documentation."""

import base64
import hashlib
import hmac
import json

import pytest

from storage.domain import limits
from storage.domain.errors import SignatureRejected
from storage.domain.sources.signatures import deduplication_id, verify
from storage.domain.sources.source import (
    HmacAlgorithm,
    HmacScheme,
    SignatureEncoding,
    SourceSpec,
    SourceTarget,
    WebhookProvider,
)

INTO = SourceTarget(queue="events")
SLACK_BODY = (
    b"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V"
    b"&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text="
    b"&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN"
    b"&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"
)
STRIPE_BODY = b'{"id": "evt_1", "object": "event", "type": "charge.succeeded"}'
STRIPE_SECRET = "whsec_test_of_the_documentation"


def stripe_signature(secret: str, timestamp: int, body: bytes) -> str:
    """Sign as Stripe's page on verifying signatures manually says."""
    signed = f"{timestamp}.".encode() + body
    return hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()


VECTORS = {
    WebhookProvider.GITHUB: (
        "It's a Secret to Everybody",
        {
            "x-hub-signature-256": "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17",
            "x-github-delivery": "72d3162e-cc78-11e3-81ab-4c9367dc0958",
            "x-github-event": "issues",
        },
        b"Hello, World!",
        0,
        "72d3162e-cc78-11e3-81ab-4c9367dc0958",
    ),
    WebhookProvider.SLACK: (
        "8f742231b10e8888abcd99yyyzzz85a5",
        {
            "x-slack-request-timestamp": "1531420618",
            "x-slack-signature": "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503",
        },
        SLACK_BODY,
        1_531_420_618,
        "",
    ),
    WebhookProvider.STANDARD_WEBHOOKS: (
        "whsec_plJ3nmyCDGBKInavdOK15jsl",
        {
            "webhook-id": "msg_loFOjxBNrRLzqYUf",
            "webhook-timestamp": "1731705121",
            "webhook-signature": "v1,rAvfW3dJ/X/qxhsaXPOyyCGmRKsaKWcsNccKXlIktD0=",
        },
        b'{"event_type":"ping","data":{"success":true}}',
        1_731_705_121,
        "msg_loFOjxBNrRLzqYUf",
    ),
    WebhookProvider.STRIPE: (
        STRIPE_SECRET,
        {
            "stripe-signature": f"t=1492774577,v1={stripe_signature(STRIPE_SECRET, 1492774577, STRIPE_BODY)},v0=6ffbb59b"
        },
        STRIPE_BODY,
        1_492_774_577,
        "evt_1",
    ),
}
TIMED = [provider for provider in VECTORS if provider is not WebhookProvider.GITHUB]


def spec_of(provider: WebhookProvider, **settings) -> SourceSpec:
    return SourceSpec(provider=provider, into=INTO, **settings)


@pytest.mark.parametrize("provider", VECTORS)
def test_documented_signature_is_accepted(provider):
    secret, headers, body, at_s, event_id = VECTORS[provider]

    event = verify(spec_of(provider), [secret], headers, body, at_s * 1000)

    assert event.event_id == event_id
    assert event.handshake is None


@pytest.mark.parametrize("provider", VECTORS)
def test_changed_body_is_rejected(provider):
    secret, headers, body, at_s, _ = VECTORS[provider]

    with pytest.raises(SignatureRejected) as rejected:
        verify(spec_of(provider), [secret], headers, body + b" ", at_s * 1000)

    assert rejected.value.facts["reason"] == "signature_mismatch"


@pytest.mark.parametrize("provider", VECTORS)
def test_other_secret_is_rejected(provider):
    _, headers, body, at_s, _ = VECTORS[provider]

    with pytest.raises(SignatureRejected, match="does not match"):
        verify(spec_of(provider), ["another secret"], headers, body, at_s * 1000)


@pytest.mark.parametrize("provider", VECTORS)
@pytest.mark.parametrize("order", [1, -1])
def test_either_secret_is_accepted_during_a_rotation(provider, order):
    secret, headers, body, at_s, event_id = VECTORS[provider]
    secrets = [secret, "whsec_bmV4dA=="][::order]

    assert verify(spec_of(provider), secrets, headers, body, at_s * 1000).event_id == event_id


@pytest.mark.parametrize("provider", TIMED)
@pytest.mark.parametrize("late_s", [-301, 301])
def test_signature_out_of_tolerance_is_rejected(provider, late_s):
    secret, headers, body, at_s, _ = VECTORS[provider]

    with pytest.raises(SignatureRejected) as rejected:
        verify(spec_of(provider), [secret], headers, body, (at_s + late_s) * 1000)

    assert rejected.value.facts["reason"] == "timestamp_out_of_tolerance"


@pytest.mark.parametrize("provider", VECTORS)
def test_each_missing_header_is_named(provider):
    secret, headers, body, at_s, _ = VECTORS[provider]
    needed = [name for name in headers if name not in ("x-github-delivery", "x-github-event")]

    for name in needed:
        others = {other: value for other, value in headers.items() if other != name}
        with pytest.raises(SignatureRejected, match=f"(?i){name}") as rejected:
            verify(spec_of(provider), [secret], others, body, at_s * 1000)
        assert rejected.value.facts["reason"] == "header_missing"


@pytest.mark.parametrize("provider", VECTORS)
@pytest.mark.parametrize(
    "text", ["", "=", "v1,", "v1=", "t=,v1=", "v0=zz", "sha256=\u00e4", "v1,%%%", "t=9,v1=\u0661"]
)
def test_malformed_signature_is_rejected(provider, text):
    secret, headers, body, at_s, _ = VECTORS[provider]
    [name] = [name for name in headers if "signature" in name]

    with pytest.raises(SignatureRejected):
        verify(spec_of(provider), [secret], {**headers, name: text}, body, at_s * 1000)


def test_stripe_accepts_one_of_several_signatures():
    """Stripe signs with both secrets while one is being rolled."""
    good = stripe_signature(STRIPE_SECRET, 5, STRIPE_BODY)
    headers = {"stripe-signature": f"t=5,v1={'0' * 64},v1={good}"}

    assert verify(spec_of(WebhookProvider.STRIPE), [STRIPE_SECRET], headers, STRIPE_BODY, 5_000)


def test_slack_challenge_is_answered():
    secret, body = "8f742231b10e8888", b'{"type": "url_verification", "challenge": "3eZbrw1aB"}'
    signature = hmac.new(secret.encode(), b"v0:7:" + body, hashlib.sha256).hexdigest()
    headers = {"x-slack-request-timestamp": "7", "x-slack-signature": f"v0={signature}"}

    handshake = verify(spec_of(WebhookProvider.SLACK), [secret], headers, body, 7_000).handshake

    assert handshake is not None
    assert json.loads(handshake.body) == {"challenge": "3eZbrw1aB"}


def test_github_ping_is_a_handshake():
    secret, headers, body, _, _ = VECTORS[WebhookProvider.GITHUB]
    ping = {**headers, "x-github-event": "ping"}

    assert verify(spec_of(WebhookProvider.GITHUB), [secret], ping, body, 0).handshake


@pytest.mark.parametrize("algorithm", HmacAlgorithm)
@pytest.mark.parametrize("encoding", SignatureEncoding)
@pytest.mark.parametrize("timestamp_header", [None, "X-Time"])
def test_generic_hmac_verifies_what_its_scheme_says(algorithm, encoding, timestamp_header):
    scheme = HmacScheme(
        signature_header="X-Sum",
        algorithm=algorithm,
        encoding=encoding,
        prefix="sum=",
        timestamp_header=timestamp_header,
        id_header="X-Id",
    )
    content = b"9.body" if timestamp_header else b"body"
    digest = hmac.digest(b"a secret", content, algorithm.value)
    text = digest.hex() if encoding is SignatureEncoding.HEX else base64.b64encode(digest).decode()
    headers = {"x-sum": f"sum={text}", "x-time": "9", "x-id": "e1"}

    event = verify(
        spec_of(WebhookProvider.HMAC, hmac=scheme), ["a secret"], headers, b"body", 9_000
    )

    assert event.event_id == "e1"


def test_long_event_id_is_replaced_by_its_hash():
    assert deduplication_id("e" * 256) == "e" * 256
    assert len(deduplication_id("e" * 257)) == 64


def test_many_signatures_are_refused_before_they_are_compared():
    """Each cost an HMAC of the body: one header took a processor a minute, without a secret."""
    headers = {"stripe-signature": "t=1," + "v1=aa," * (limits.SOURCE_SIGNATURES_MAX + 1)}

    with pytest.raises(SignatureRejected) as rejected:
        verify(spec_of(WebhookProvider.STRIPE), [STRIPE_SECRET], headers, b"{}", 1000)

    assert rejected.value.facts["reason"] == "signature_malformed"
