"""Verification of webhook signatures over raw bodies, in constant time.

    standard_webhooks  webhook-signature: v1,<base64> …            signs <id>.<timestamp>.<body>
    stripe             stripe-signature: t=<timestamp>,v1=<hex>,…  signs <timestamp>.<body>
    github             x-hub-signature-256: sha256=<hex>           signs <body>
    slack              x-slack-signature: v0=<hex>                 signs v0:<timestamp>:<body>
    hmac               as its `HmacScheme` says

Every secret is tried, so that a provider's secret can be rotated. Sources: standardwebhooks.com, and the pages of Stripe,
GitHub and Slack on verifying webhook signatures.
"""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from storage.domain import limits
from storage.domain.errors import SignatureRejected
from storage.domain.sources.source import (
    HmacScheme,
    SignatureEncoding,
    SourceSpec,
    WebhookProvider,
)

_STANDARD_PREFIX = "whsec_"
_JSON_REPLY = "application/json"

RequestHeaders = Mapping[str, str]
"""Headers of a request by their names in lower case."""


def _rejected(reason: str, detail: str) -> SignatureRejected:
    return SignatureRejected(detail, reason=reason)


class SignatureParts(NamedTuple):
    """Signed content of a request, its signatures, and the signed time in seconds, if any."""

    content: bytes
    signatures: Sequence[bytes]
    timestamp: int | None = None


class Handshake(NamedTuple):
    """Response to a request by which a provider tests the URL; it is no event."""

    content_type: str
    body: bytes


class VerifiedEvent(NamedTuple):
    """A request from the provider. `event_id` is empty where the provider gives none."""

    event_id: str
    handshake: Handshake | None = None


def verify(
    spec: SourceSpec, secrets: Sequence[str], headers: RequestHeaders, body: bytes, now_ms: int
) -> VerifiedEvent:
    """Verify a request to a source by the provider's rules. Raises SignatureRejected."""
    provider = _PROVIDERS[spec.provider]
    signed = provider.parse(spec.hmac or HmacScheme(), headers, body)
    algorithm = spec.hmac.algorithm.value if spec.hmac else "sha256"
    keys = [provider.key_of(secret) for secret in secrets]
    macs = [hmac.digest(key, signed.content, algorithm) for key in keys]
    matches = [
        hmac.compare_digest(mac, signature) for mac in macs for signature in signed.signatures
    ]
    if not any(matches):
        raise _rejected("signature_mismatch", "The signature does not match the body.")
    if signed.timestamp is not None:
        _check_age(signed.timestamp, spec.tolerance_ms, now_ms)
    return provider.event_of(spec.hmac or HmacScheme(), headers, body)


def _check_age(timestamp: int, tolerance_ms: int, now_ms: int) -> None:
    age_s = now_ms / limits.SECOND_MS - timestamp
    if abs(age_s) * limits.SECOND_MS > tolerance_ms:
        side = "old" if age_s > 0 else "far in the future"
        detail = f"The request was signed {abs(age_s):.0f} s from now, which is too {side}."
        raise _rejected("timestamp_out_of_tolerance", detail)


def _header(headers: RequestHeaders, name: str) -> str:
    value = headers.get(name.lower())
    if value is None:
        raise _rejected("header_missing", f"The header {name} is missing.")
    return value


def _timestamp(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 12):
        raise _rejected("timestamp_malformed", "The timestamp is not in seconds.")
    return int(text)


def _hex(text: str) -> bytes:
    try:
        return bytes.fromhex(text) if text.isascii() else b""
    except ValueError:
        return b""


def _base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""


def _require_signatures(signatures: Sequence[bytes]) -> Sequence[bytes]:
    decoded = [signature for signature in signatures if signature]
    if not decoded:
        raise _rejected("signature_malformed", "The signature header has no signature.")
    if len(decoded) > limits.SOURCE_SIGNATURES_MAX:
        detail = f"The signature header has more than {limits.SOURCE_SIGNATURES_MAX} signatures."
        raise _rejected("signature_malformed", detail)
    return decoded


def _standard_content(event_id: str, time: str, body: bytes) -> bytes:
    return f"{event_id}.{time}.".encode() + body


def _timed_content(time: str, body: bytes) -> bytes:
    return f"{time}.".encode() + body


def _slack_content(time: str, body: bytes) -> bytes:
    return f"v0:{time}:".encode() + body


def _parse_standard(_: HmacScheme, headers: RequestHeaders, body: bytes) -> SignatureParts:
    event_id, time = _header(headers, "webhook-id"), _header(headers, "webhook-timestamp")
    parts = [word.partition(",") for word in _header(headers, "webhook-signature").split()]
    signatures = [_base64(text) for version, _, text in parts if version == "v1"]
    content = _standard_content(event_id, time, body)
    return SignatureParts(content, _require_signatures(signatures), _timestamp(time))


def _parse_stripe(_: HmacScheme, headers: RequestHeaders, body: bytes) -> SignatureParts:
    items = [item.partition("=") for item in _header(headers, "stripe-signature").split(",")]
    times = [text for name, _, text in items if name.strip() == "t"]
    time = times[0] if times else ""
    signatures = [_hex(text) for name, _, text in items if name.strip() == "v1"]
    return SignatureParts(
        _timed_content(time, body), _require_signatures(signatures), _timestamp(time)
    )


def _parse_github(_: HmacScheme, headers: RequestHeaders, body: bytes) -> SignatureParts:
    version, _sep, text = _header(headers, "x-hub-signature-256").partition("=")
    return SignatureParts(body, _require_signatures([_hex(text) if version == "sha256" else b""]))


def _parse_slack(_: HmacScheme, headers: RequestHeaders, body: bytes) -> SignatureParts:
    time = _header(headers, "x-slack-request-timestamp")
    version, _sep, text = _header(headers, "x-slack-signature").partition("=")
    signatures = _require_signatures([_hex(text) if version == "v0" else b""])
    return SignatureParts(_slack_content(time, body), signatures, _timestamp(time))


def _parse_hmac(scheme: HmacScheme, headers: RequestHeaders, body: bytes) -> SignatureParts:
    text = _header(headers, scheme.signature_header)
    decode = _hex if scheme.encoding is SignatureEncoding.HEX else _base64
    has_prefix = text.startswith(scheme.prefix)
    signatures = _require_signatures(
        [decode(text.removeprefix(scheme.prefix)) if has_prefix else b""]
    )
    if scheme.timestamp_header is None:
        return SignatureParts(body, signatures)
    time = _header(headers, scheme.timestamp_header)
    return SignatureParts(_timed_content(time, body), signatures, _timestamp(time))


def _standard_event(_: HmacScheme, headers: RequestHeaders, __: bytes) -> VerifiedEvent:
    return VerifiedEvent(headers["webhook-id"])


def _stripe_event(_: HmacScheme, __: RequestHeaders, body: bytes) -> VerifiedEvent:
    return VerifiedEvent(_text_of(_json(body), "id"))


def _github_event(_: HmacScheme, headers: RequestHeaders, __: bytes) -> VerifiedEvent:
    is_ping = headers.get("x-github-event") == "ping"
    event_id = headers.get("x-github-delivery", "")
    return VerifiedEvent(event_id, Handshake("text/plain", b"pong") if is_ping else None)


def _slack_event(_: HmacScheme, __: RequestHeaders, body: bytes) -> VerifiedEvent:
    content = _json(body)
    if _text_of(content, "type") == "url_verification":
        challenge = {"challenge": _text_of(content, "challenge")}
        return VerifiedEvent("", Handshake(_JSON_REPLY, msgspec.json.encode(challenge)))
    return VerifiedEvent(_text_of(content, "event_id"))


def _hmac_event(scheme: HmacScheme, headers: RequestHeaders, _: bytes) -> VerifiedEvent:
    return VerifiedEvent(headers.get(scheme.id_header.lower(), "") if scheme.id_header else "")


def _json(body: bytes) -> object:
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None  # a slash command of Slack is a form


def _text_of(content: object, name: str) -> str:
    value = content.get(name) if isinstance(content, dict) else None
    return value if isinstance(value, str) else ""


def _standard_key(secret: str) -> bytes:
    """Return the key of a Standard Webhooks secret, which is base64 behind its prefix."""
    return _base64(secret.removeprefix(_STANDARD_PREFIX)) or secret.encode()


class _Provider(NamedTuple):
    parse: Callable[[HmacScheme, RequestHeaders, bytes], SignatureParts]
    event_of: Callable[[HmacScheme, RequestHeaders, bytes], VerifiedEvent]
    key_of: Callable[[str], bytes] = str.encode


_PROVIDERS = {
    WebhookProvider.STANDARD_WEBHOOKS: _Provider(_parse_standard, _standard_event, _standard_key),
    WebhookProvider.STRIPE: _Provider(_parse_stripe, _stripe_event),
    WebhookProvider.GITHUB: _Provider(_parse_github, _github_event),
    WebhookProvider.SLACK: _Provider(_parse_slack, _slack_event),
    WebhookProvider.HMAC: _Provider(_parse_hmac, _hmac_event),
}


def sign(
    spec: SourceSpec, secret: str, body: bytes, *, event_id: str, timestamp: int
) -> dict[str, str]:
    """Return the headers with which the provider would send a body.

    `timestamp` is in seconds.
    """
    scheme, time = spec.hmac or HmacScheme(), str(timestamp)
    key, algorithm = _PROVIDERS[spec.provider].key_of(secret), scheme.algorithm.value
    match spec.provider:
        case WebhookProvider.STANDARD_WEBHOOKS:
            mac = hmac.digest(key, _standard_content(event_id, time, body), algorithm)
            signature = f"v1,{base64.b64encode(mac).decode()}"
            return {
                "webhook-id": event_id,
                "webhook-timestamp": time,
                "webhook-signature": signature,
            }
        case WebhookProvider.STRIPE:
            mac = hmac.digest(key, _timed_content(time, body), algorithm)
            return {"stripe-signature": f"t={time},v1={mac.hex()}"}
        case WebhookProvider.GITHUB:
            signature = f"sha256={hmac.digest(key, body, algorithm).hex()}"
            return {
                "x-hub-signature-256": signature,
                "x-github-delivery": event_id,
                "x-github-event": "test",
            }
        case WebhookProvider.SLACK:
            mac = hmac.digest(key, _slack_content(time, body), algorithm)
            return {"x-slack-request-timestamp": time, "x-slack-signature": f"v0={mac.hex()}"}
        case WebhookProvider.HMAC:
            return _signed_by(scheme, key, body, event_id, time)


def _signed_by(
    scheme: HmacScheme, key: bytes, body: bytes, event_id: str, time: str
) -> dict[str, str]:
    content = body if scheme.timestamp_header is None else _timed_content(time, body)
    mac = hmac.digest(key, content, scheme.algorithm.value)
    is_hex = scheme.encoding is SignatureEncoding.HEX
    text = mac.hex() if is_hex else base64.b64encode(mac).decode()
    headers = {scheme.signature_header.lower(): scheme.prefix + text}
    if scheme.timestamp_header is not None:
        headers[scheme.timestamp_header.lower()] = time
    if scheme.id_header is not None:
        headers[scheme.id_header.lower()] = event_id
    return headers


def deduplication_id(event_id: str) -> str:
    """Return the id under which an event is remembered: a long one as its SHA-256."""
    if len(event_id) <= limits.SOURCE_EVENT_ID_CHARACTERS_MAX:
        return event_id
    return hashlib.sha256(event_id.encode()).hexdigest()
