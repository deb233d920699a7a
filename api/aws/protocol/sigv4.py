"""Verification of Signature Version 4, in the Authorization header or in a presigned URL.

    canonical request   method · path · query · headers that are signed · their names · SHA-256 of the body
    string to sign      AWS4-HMAC-SHA256 · time · date/region/service/aws4_request · SHA-256 of the former
    signature           HMAC by a key made of the secret, the date, the region and the service

Source: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html. The path is
encoded a second time, as for every service but S3. The body's digest is always that of the received body. Any region is
accepted; `host` and every `x-amz-` header have to be signed. A signature is valid for five minutes either way, and a
presigned URL for the duration that it states.
"""

import hashlib
import re
from calendar import timegm
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from hmac import compare_digest
from hmac import digest as hmac_digest
from operator import itemgetter
from time import strptime
from typing import NoReturn
from urllib.parse import quote, unquote_to_bytes

import msgspec

from api.aws.protocol.errors import (
    INCOMPLETE_SIGNATURE,
    MISSING_SIGNATURE,
    UNKNOWN,
    WRONG_SIGNATURE,
    AwsError,
)
from api.http.request import FastRequest
from api.types import RequestHeaders
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
_BLOCK_BYTES = 64  # of SHA-256
_INNER = bytes(byte ^ 0x36 for byte in range(256))
_OUTER = bytes(byte ^ 0x5C for byte in range(256))
_HEX_CHARACTERS = 64  # of a SHA-256
_EXPIRES_S_MAX = limits.PRESIGNED_MS_MAX // limits.SECOND_MS

_NO_MATCH = AwsError(
    WRONG_SIGNATURE,
    "The request signature we calculated does not match the signature you provided. Check your AWS Secret Access"
    " Key and signing method. Consult the service documentation for details.",
)


class SignedClaims(msgspec.Struct, frozen=True):
    """The signed claims of a request without the signature; a client's next calls repeat them.

    `scope`: date, region, service. `values` selects the signed headers out of all; `amazons` of them begin with `x-amz-`. It
    is whole when `host` is among them and its two dates agree, and is valid from `since_ms` to `until_ms`, in milliseconds
    since 1970. `headers` and `to_sign` are templates of the signed text, with a placeholder for each value that differs from
    call to call.
    """

    key_id: str
    scope: tuple[str, str, str]
    time: str
    values: Callable[[RequestHeaders], tuple[bytes, ...]]
    since_ms: int
    until_ms: int
    amazons: int
    is_whole: bool
    headers: bytes
    to_sign: bytes

    @classmethod
    def of(
        cls, credential: str, moment: str, signed: str, lasts_ms: int = limits.SIGNATURE_SKEW_MS_MAX
    ) -> "SignedClaims":
        """Parse a claim from its parts in a request. Raises AwsError."""
        key_id, scope = _credential(credential)
        names = tuple(name.encode("latin-1") for name in signed.split(";"))
        lines = b"".join(name.replace(b"%", b"%%") + b":%b\n" for name in names)
        ending = b";".join(names).replace(b"%", b"%%")
        signed_ms = moment_s(moment) * limits.SECOND_MS
        first = f"{ALGORITHM}\n{moment}\n{'/'.join((*scope, _END))}\n"
        return cls(
            key_id,
            scope,
            moment,
            _getter(names),
            signed_ms - limits.SIGNATURE_SKEW_MS_MAX,
            signed_ms + lasts_ms,
            _amazons(frozenset(names)),
            moment[:8] == scope[0] and b"host" in names,
            lines + b"\n" + ending + b"\n%b",
            first.encode().replace(b"%", b"%%") + b"%b",
        )


Signature = tuple[SignedClaims, bytes]
"""A claim and its signature, in hexadecimal digits."""


class SignedRequest:
    """A complete request to an AWS endpoint, as `api.auth.authenticator.Signed`."""

    __slots__ = ("_method", "_request", "_service", "_signature", "headers")

    def __init__(self, request: FastRequest, method: str, service: str) -> None:
        self.headers = request.headers
        self._request = request
        self._method = method
        self._service = service
        self._signature: Signature | None = None

    def key_id(self) -> str:
        """Return the id of the key pair that the request names. Raises AwsError."""
        self._signature = read_signature(self._request)
        # Temporary keys are never issued here.
        if b"x-amz-security-token" in self.headers:
            raise self.unknown()
        return self._signature[0].key_id

    def check(self, secret: bytes, now_ms: int) -> None:
        """Verify the signature. Raises AwsError."""
        claim, proof = self._signature or read_signature(self._request)
        if not (
            claim.is_whole
            and claim.since_ms <= now_ms <= claim.until_ms
            and claim.scope[2] == self._service
            and _amazons(self.headers) <= claim.amazons
        ):
            _refuse(claim, self._service, now_ms)
        canonical = _canonical(claim, self._request, self._method)
        inner, outer = signing_key(secret, claim.scope)
        inner, outer = inner.copy(), outer.copy()
        inner.update(claim.to_sign % hashlib.sha256(canonical).hexdigest().encode())
        outer.update(inner.digest())
        if not compare_digest(outer.hexdigest().encode(), proof):
            raise _NO_MATCH

    def unknown(self) -> AwsError:
        return UNKNOWN


def read_signature(request: FastRequest) -> Signature:
    """Return the request's signature, not yet verified.

    Raises AwsError when it has none, or an incomplete one.
    """
    header = request.headers.get(b"authorization", b"")
    presigned = request.query_string and _PRESIGNED in request.query_string
    if header and presigned:
        raise AwsError(
            WRONG_SIGNATURE,
            "Found both 'X-Amz-Algorithm' as a query-string param and 'Authorization' as HTTP header.",
        )
    if presigned:
        return _of_query(request.query_string)
    if not header.startswith(_SCHEME):
        raise AwsError(MISSING_SIGNATURE, "Missing Authentication Token")
    claimed, separator, hex_ = header.rpartition(_LAST)
    if not separator or b"," in hex_:  # the signature is not the last parameter, or is missing
        claimed, hex_ = header, _parts(header).get("Signature", "").encode("latin-1")
    claim = _claim_of(claimed, request.headers.get(b"x-amz-date", b""), bool(hex_))
    return claim, hex_.strip()


def service_of(request: FastRequest) -> bytes:
    """Return the service that the signature names, unverified; b"" when it names none."""
    header = request.headers.get(b"authorization")
    match = _SERVICE.search(header or unquote_to_bytes(request.query_string))
    return match[1] if match else b""


@lru_cache(maxsize=512)
def signing_key(
    secret: bytes, scope: tuple[str, str, str]
) -> tuple["hashlib._Hash", "hashlib._Hash"]:
    """Return the signing key of a date, region and service as HMAC halves to be copied.

    The two halves have hashed the key. RFC 2104: outer key, and the digest of inner key and text. Copies of `hmac.HMAC` cost
    half as much again.
    """
    key = b"AWS4" + secret
    for element in (*scope, _END):
        key = hmac_digest(key, element.encode(), "sha256")
    block = key.ljust(_BLOCK_BYTES, b"\0")
    return hashlib.sha256(block.translate(_INNER)), hashlib.sha256(block.translate(_OUTER))


# Parsing


@lru_cache(maxsize=1024)
def _claim_of(header: bytes, moment: bytes, has_signature: bool) -> SignedClaims:
    """Parse the claims of an Authorization header without its signature. Raises AwsError.

    They are the same in all calls that a client makes within a second.
    """
    parts = _parts(header)
    present = {name for name, value in parts.items() if value} | (
        {"Signature"} if has_signature else set()
    )
    missing = [name for name in ("Credential", "Signature", "SignedHeaders") if name not in present]
    if missing:
        wants = " ".join(f"Authorization header requires '{name}' parameter." for name in missing)
        raise AwsError(INCOMPLETE_SIGNATURE, wants)
    if not _TIME.fullmatch(moment.decode("latin-1")):
        text = "Authorization header requires existence of a 'X-Amz-Date' header."
        raise AwsError(INCOMPLETE_SIGNATURE, text)
    return SignedClaims.of(parts["Credential"], moment.decode(), parts["SignedHeaders"])


def _parts(header: bytes) -> dict[str, str]:
    """Return the parameters of an Authorization header, by name."""
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
        raise AwsError(INCOMPLETE_SIGNATURE, wants or "The presigned URL is malformed.")
    if (
        not expires.isascii()
        or not expires.isdigit()
        or not 1 <= int(expires[:9]) <= _EXPIRES_S_MAX
    ):
        text = f"X-Amz-Expires must be between 1 and {_EXPIRES_S_MAX} seconds."
        raise AwsError(INCOMPLETE_SIGNATURE, text)
    credential, moment, signed, hex_ = (given[f"X-Amz-{name}"] for name in names[:4])
    claim = SignedClaims.of(credential, moment, signed, int(expires) * limits.SECOND_MS)
    return claim, hex_.encode("latin-1")


def _credential(credential: str) -> tuple[str, tuple[str, str, str]]:
    """Return the key's id, and date, region and service. Raises AwsError."""
    words = credential.split("/")
    if len(words) != 5 or words[4] != _END or not all(words):
        text = "Credential must have exactly 5 slash-delimited elements, e.g. keyid/date/region/service/aws4_request."
        raise AwsError(INCOMPLETE_SIGNATURE, text)
    key_id, date, region, service, _ = words
    return key_id, (date, region, service)


# Verification


def _refuse(claim: SignedClaims, service: str, now_ms: int) -> NoReturn:
    """Raise AwsError for the part of a claim that is not valid."""
    if claim.time[:8] != claim.scope[0]:
        text = f"Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from HTTP: '{claim.time[:8]}'."
    elif now_ms > claim.until_ms:
        text = f"Signature expired: {claim.time} is now too long ago."
    elif now_ms < claim.since_ms:
        text = f"Signature not yet current: {claim.time} is still to come."
    elif claim.scope[2] != service:
        text = f"Credential should be scoped to correct service: '{service}'."
    else:  # headers that affect the answer must be signed
        text = "'Host' and every 'X-Amz-' header must be in SignedHeaders."
    raise AwsError(WRONG_SIGNATURE, text)


def moment_s(moment: str) -> int:
    """Return seconds since 1970.

    Raises AwsError for an invalid date, such as a thirteenth month.
    """
    try:
        return timegm(strptime(moment, "%Y%m%dT%H%M%SZ"))
    except ValueError:
        raise AwsError(INCOMPLETE_SIGNATURE, f"'{moment}' is not a valid time.") from None


def _amazons(names: Iterable[bytes]) -> int:
    """Count the names that begin with `x-amz-`."""
    return (b"\n" + b"\n".join(names)).count(b"\nx-amz-")


# The canonical request


def _getter(names: Sequence[bytes]) -> Callable[[RequestHeaders], tuple[bytes, ...]]:
    """Return a getter of the headers of these names; it raises KeyError for a missing one."""
    if len(names) > 1:
        return itemgetter(*names)
    return lambda headers: (headers[names[0]],)


def _canonical(claim: SignedClaims, request: FastRequest, method: str) -> bytes:
    """Build the canonical request. Raises AwsError if a signed header is missing."""
    given = request.headers
    try:
        values = claim.values(given)
    except KeyError:
        raise _NO_MATCH from None
    headers = claim.headers % (*values, hashlib.sha256(request.body).hexdigest().encode())
    if b" " in headers and (b"  " in headers or b": " in headers or b" \n" in headers):
        trimmed = [_SPACES.sub(b" ", value.strip()) if b" " in value else value for value in values]
        headers = claim.headers % (*trimmed, headers[-_HEX_CHARACTERS:])
    query = _canonical_query(request.query_string) if request.query_string else b""
    return b"%b%b\n%b" % (_first_lines(method, "/".join(request.segments)), query, headers)


@lru_cache(maxsize=1024)
def _first_lines(method: str, path: str) -> bytes:
    return f"{method}\n{quote(path, safe='/' + _SAFE)}\n".encode()


def _canonical_query(query_string: bytes) -> bytes:
    encoded = sorted(
        (_encoded(name), _encoded(value))
        for name, value in _raw_pairs(query_string)
        if name != b"X-Amz-Signature"
    )
    return "&".join(f"{name}={value}" for name, value in encoded).encode()


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
