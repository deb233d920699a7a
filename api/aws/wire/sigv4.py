"""Signature Version 4, checked: in the Authorization header, or in the query of a presigned address.

    canonical request   method · path · query · headers that are signed · their names · SHA-256 of the body
    string to sign      AWS4-HMAC-SHA256 · time · date/region/service/aws4_request · SHA-256 of the former
    signature           HMAC by a key made of the secret, the date, the region and the service

Source: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html. The path is
encoded once more, as for every service but S3. The body's digest is always that of the body that came. Any region
is taken; `host` and every `x-amz-` header have to be signed. What is signed holds for five minutes either way, and a
presigned address for as long as it says.
"""

import hashlib
import hmac
import re
from calendar import timegm
from collections.abc import Sequence
from functools import lru_cache
from time import strptime
from typing import NamedTuple
from urllib.parse import quote, unquote_to_bytes

import msgspec

from api.aws.wire.errors import (
    INCOMPLETE_SIGNATURE,
    MISSING_SIGNATURE,
    UNKNOWN,
    WRONG_SIGNATURE,
    AwsError,
)
from api.dataplane import HotRequest
from api.payloads import RequestHeaders
from storage.domain import limits

ALGORITHM = "AWS4-HMAC-SHA256"
_SCHEME = b"AWS4-HMAC-SHA256 "
_END = "aws4_request"
_PRESIGNED = b"X-Amz-Signature="
_SERVICE = re.compile(rb"/([^/]*)/aws4_request")
_TIME = re.compile(r"[0-9]{8}T[0-9]{6}Z")
_SAFE = "-_.~"
_LAST = b", Signature="
_SPACES = re.compile(rb" +")
_SKEW_S = limits.SIGNATURE_SKEW_MS_MAX // limits.SECOND_MS
_EXPIRES_S_MAX = limits.PRESIGNED_MS_MAX // limits.SECOND_MS

_NO_MATCH = AwsError(
    WRONG_SIGNATURE,
    "The request signature we calculated does not match the signature you provided. Check your AWS Secret Access"
    " Key and signing method. Consult the service documentation for details.",
)


class Signature(msgspec.Struct, frozen=True):
    """What a request says of its signature. `scope`: date, region, service. `expires_s`: of a presigned address."""

    key_id: str
    scope: tuple[str, str, str]
    time: str
    signed: tuple[str, ...]
    hex: str
    expires_s: int | None = None


class SignedRequest:
    """A whole request at an AWS door, as `api.auth.gate.Signed`."""

    __slots__ = ("_method", "_request", "_service", "_signature")

    def __init__(self, request: HotRequest, method: str, service: str) -> None:
        self._request = request
        self._method = method
        self._service = service
        self._signature: Signature | None = None

    @property
    def headers(self) -> RequestHeaders:
        """As Signed."""
        return self._request.headers

    def key_id(self) -> str:
        """As Signed. Raises AwsError."""
        self._signature = read_signature(self._request)
        if b"x-amz-security-token" in self.headers:  # nothing here gives out temporary keys
            raise self.unknown()
        return self._signature.key_id

    def check(self, secret: bytes, now_s: float) -> None:
        """As Signed. Raises AwsError."""
        signature = self._signature or read_signature(self._request)
        check_signature(signature, secret, self._request, self._method, self._service, now_s)

    def unknown(self) -> AwsError:
        """As Signed."""
        return UNKNOWN


def read_signature(request: HotRequest) -> Signature:
    """The request's signature, not yet checked. Raises AwsError when it has none, or no whole one."""
    header = request.headers.get(b"authorization", b"")
    presigned = _PRESIGNED in request.query_string
    if header and presigned:
        raise AwsError(
            WRONG_SIGNATURE,
            "Found both 'X-Amz-Algorithm' as a query-string param and 'Authorization' as HTTP header.",
        )
    if presigned:
        return _of_query(request.query_string)
    if not header.startswith(_SCHEME):
        raise AwsError(MISSING_SIGNATURE, "Missing Authentication Token")
    return _of_header(header, request)


def service_of(request: HotRequest) -> bytes:
    """The service that a request says it is signed for, not yet checked; b"" when it says none."""
    header = request.headers.get(b"authorization")
    found = _SERVICE.search(header or unquote_to_bytes(request.query_string))
    return found[1] if found else b""


def check_signature(
    signature: Signature,
    secret: bytes,
    request: HotRequest,
    method: str,
    service: str,
    now_s: float,
) -> None:
    """Raise AwsError unless whoever has `secret` signed this request for `service`, lately."""
    _check_time(signature, now_s)
    _check_scope(signature, service)
    _check_signed(signature, request)
    key = signing_key(secret, *signature.scope)
    wanted = hmac.digest(key, _to_sign(signature, request, method), "sha256").hex()
    if not hmac.compare_digest(wanted.encode(), signature.hex.encode()):
        raise _NO_MATCH


@lru_cache(maxsize=512)
def signing_key(secret: bytes, date: str, region: str, service: str) -> bytes:
    """The key of a day, a region and a service."""
    key = b"AWS4" + secret
    for word in (date, region, service, _END):
        key = hmac.digest(key, word.encode(), "sha256")
    return key


# What the request says


def _of_header(header: bytes, request: HotRequest) -> Signature:
    parts = _parts(header)
    missing = [name for name in ("Credential", "Signature", "SignedHeaders") if not parts.get(name)]
    if missing:
        wants = " ".join(f"Authorization header requires '{name}' parameter." for name in missing)
        raise AwsError(INCOMPLETE_SIGNATURE, wants)
    moment = request.headers.get(b"x-amz-date", b"").decode("latin-1")
    if not _TIME.fullmatch(moment):
        text = "Authorization header requires existence of a 'X-Amz-Date' header."
        raise AwsError(INCOMPLETE_SIGNATURE, text)
    return _signature(parts["Credential"], moment, parts["SignedHeaders"], parts["Signature"])


def _parts(header: bytes) -> dict[str, str]:
    """What the header says, by name. All but the signature is the same in a client's next call."""
    same, found, hex_ = header.rpartition(_LAST)
    if found and b"," not in hex_:
        return {**_same_parts(same), "Signature": hex_.decode("latin-1").strip()}
    return _same_parts(header)


@lru_cache(maxsize=1024)
def _same_parts(header: bytes) -> dict[str, str]:
    parts = {}
    for part in header[len(_SCHEME) :].decode("latin-1").split(","):
        name, _, value = part.strip().partition("=")
        parts[name] = value
    return parts


def _of_query(query_string: bytes) -> Signature:
    given = dict(_pairs(query_string))
    names = ("Credential", "Date", "SignedHeaders", "Signature", "Expires", "Algorithm")
    missing = [name for name in names if not given.get(f"X-Amz-{name}")]
    expires = given.get("X-Amz-Expires", "")
    if missing or given["X-Amz-Algorithm"] != ALGORITHM or not _TIME.fullmatch(given["X-Amz-Date"]):
        wants = " ".join(
            f"AWS query-string parameters must include 'X-Amz-{name}'." for name in missing
        )
        raise AwsError(INCOMPLETE_SIGNATURE, wants or "The presigned address cannot be read.")
    if (
        not expires.isascii()
        or not expires.isdigit()
        or not 1 <= int(expires[:9]) <= _EXPIRES_S_MAX
    ):
        text = f"X-Amz-Expires must be between 1 and {_EXPIRES_S_MAX} seconds."
        raise AwsError(INCOMPLETE_SIGNATURE, text)
    credential, moment, signed, hex_ = (given[f"X-Amz-{name}"] for name in names[:4])
    return _signature(credential, moment, signed, hex_, int(expires))


def _signature(
    credential: str, moment: str, signed: str, hex_: str, expires_s: int | None = None
) -> Signature:
    key_id, scope = _credential(credential)
    return Signature(key_id, scope, moment, _names(signed), hex_, expires_s)


@lru_cache(maxsize=1024)
def _credential(credential: str) -> tuple[str, tuple[str, str, str]]:
    """The key's id, and date, region and service. Raises AwsError."""
    words = credential.split("/")
    if len(words) != 5 or words[4] != _END or not all(words):
        text = "Credential must have exactly 5 slash-delimited elements, e.g. keyid/date/region/service/aws4_request."
        raise AwsError(INCOMPLETE_SIGNATURE, text)
    key_id, date, region, service, _ = words
    return key_id, (date, region, service)


@lru_cache(maxsize=1024)
def _names(signed: str) -> tuple[str, ...]:
    return tuple(signed.split(";"))


class _Names(NamedTuple):
    """Names of signed headers: in order, to look them up, and as the canonical request ends with them."""

    ordered: tuple[bytes, ...]
    known: frozenset[bytes]
    line: bytes


@lru_cache(maxsize=1024)
def _encoded_names(signed: tuple[str, ...]) -> _Names:
    encoded = tuple(name.encode("latin-1") for name in signed)
    return _Names(encoded, frozenset(encoded), b"\n%b\n" % b";".join(encoded))


# What has to hold


def _check_time(signature: Signature, now_s: float) -> None:
    signed_s = moment_s(signature.time)
    until_s = signed_s + (_SKEW_S if signature.expires_s is None else signature.expires_s)
    if signature.time[:8] != signature.scope[0]:
        text = f"Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from HTTP: '{signature.time[:8]}'."
        raise AwsError(WRONG_SIGNATURE, text)
    if now_s > until_s:
        raise AwsError(WRONG_SIGNATURE, f"Signature expired: {signature.time} is now too long ago.")
    if now_s < signed_s - _SKEW_S:
        raise AwsError(
            WRONG_SIGNATURE, f"Signature not yet current: {signature.time} is still to come."
        )


@lru_cache(maxsize=64)
def moment_s(moment: str) -> int:
    """Seconds since 1970. Raises AwsError for a thirteenth month."""
    try:
        return timegm(strptime(moment, "%Y%m%dT%H%M%SZ"))
    except ValueError:
        raise AwsError(INCOMPLETE_SIGNATURE, f"'{moment}' is no time.") from None


def _check_scope(signature: Signature, service: str) -> None:
    if signature.scope[2] != service:
        text = f"Credential should be scoped to correct service: '{service}'."
        raise AwsError(WRONG_SIGNATURE, text)


def _check_signed(signature: Signature, request: HotRequest) -> None:
    """What decides on an answer has to be signed, and what is signed has to be there."""
    signed = _encoded_names(signature.signed).known
    unsigned = request.headers.keys() - signed
    if b"host" not in signed or any(name.startswith(b"x-amz-") for name in unsigned):
        text = "'Host' and every 'X-Amz-' header must be in SignedHeaders."
        raise AwsError(WRONG_SIGNATURE, text)
    if not signed <= request.headers.keys():
        raise _NO_MATCH


# The canonical request


def _to_sign(signature: Signature, request: HotRequest, method: str) -> bytes:
    scope = "/".join((*signature.scope, _END))
    digest = hashlib.sha256(_canonical(signature, request, method)).hexdigest()
    return f"{ALGORITHM}\n{signature.time}\n{scope}\n{digest}".encode()


def _canonical(signature: Signature, request: HotRequest, method: str) -> bytes:
    names, given = _encoded_names(signature.signed), request.headers
    lines = [_first_lines(method, "/".join(request.words))]
    if request.query_string:
        lines.append(_canonical_query(request.query_string).encode())
    lines.append(b"\n")
    for name in names.ordered:
        value = given[name]
        if b" " in value:
            value = _SPACES.sub(b" ", value.strip())
        lines += (name, b":", value, b"\n")
    lines += (names.line, hashlib.sha256(request.body).hexdigest().encode())
    return b"".join(lines)


@lru_cache(maxsize=1024)
def _first_lines(method: str, path: str) -> bytes:
    return f"{method}\n{quote(path, safe='/' + _SAFE)}\n".encode()


def _canonical_query(query_string: bytes) -> str:
    encoded = sorted(
        (_encoded(name), _encoded(value))
        for name, value in _raw_pairs(query_string)
        if name != b"X-Amz-Signature"
    )
    return "&".join(f"{name}={value}" for name, value in encoded)


def _encoded(word: bytes) -> str:
    return quote(unquote_to_bytes(word), safe=_SAFE)


def _raw_pairs(query_string: bytes) -> Sequence[tuple[bytes, bytes]]:
    parts = [part.partition(b"=") for part in query_string.split(b"&") if part]
    return [(name, value) for name, _, value in parts]


def _pairs(query_string: bytes) -> Sequence[tuple[str, str]]:
    return [
        (unquote_to_bytes(name).decode("latin-1"), unquote_to_bytes(value).decode("latin-1"))
        for name, value in _raw_pairs(query_string)
    ]
