"""Signature Version 4: what botocore signs is accepted, and any alteration is rejected."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
from botocore.auth import SigV4Auth, SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from hypothesis import given
from hypothesis import strategies as st

from api.aws.protocol.errors import (
    INCOMPLETE_SIGNATURE,
    MISSING_SIGNATURE,
    UNKNOWN_CLIENT,
    WRONG_SIGNATURE,
    AwsError,
)
from api.aws.protocol.sigv4 import SignedRequest, moment_s
from api.http.request import FastRequest
from storage.domain import limits

KEY_ID, SECRET = "MSAKABCDEFGHIJKLMNOP", "s3cr3t/With+Signs=and40CharactersInAllYes"
HOST = "queue.example.org:8080"
JSON_HEADERS = {
    "Content-Type": "application/x-amz-json-1.0",
    "X-Amz-Target": "AmazonSQS.SendMessage",
}
BODY = json.dumps({"QueueUrl": f"http://{HOST}/123456789012/orders", "MessageBody": "grüße"})
FORM = "Action=SendMessage&MessageBody=a+b%20c&Version=2012-11-05"


class Made:
    """A received request of which every part can be altered."""

    def __init__(self, signed: AWSRequest) -> None:
        prepared = signed.prepare()
        parts = urlsplit(prepared.url)
        self.method = str(signed.method)
        self.path = parts.path
        self.query = parts.query
        self.headers = {
            name.lower().encode(): value if isinstance(value, bytes) else value.encode()
            for name, value in prepared.headers.items()
        } | {b"host": HOST.encode()}
        body = prepared.body or b""
        self.body = body if isinstance(body, bytes) else body.encode()
        moment = self.headers.get(b"x-amz-date", b"").decode()
        if not moment:
            moment = dict(part.split("=") for part in self.query.split("&"))["X-Amz-Date"]
        self.signed_s = moment_s(moment)

    def check(self, secret: str = SECRET, *, after_s: float = 0, service: str = "sqs") -> str:
        """Return the key id that signed the request; raises AwsError."""
        request = FastRequest(
            self.path.split("/"), self.headers, self.query.encode(), lambda: True, self.body
        )
        signed = SignedRequest(request, self.method, service)
        key_id = signed.key_id()
        signed.check(secret.encode(), round((self.signed_s + after_s) * limits.SECOND_MS))
        return key_id


def sign(
    method: str = "POST",
    path: str = "/",
    *,
    headers: dict[str, str] | None = None,
    body: str | bytes = "",
    query: str = "",
    service: str = "sqs",
    expires: int | None = None,
    region: str = "eu-west-1",
) -> Made:
    request = AWSRequest(
        method=method,
        url=f"http://{HOST}{path}" + (f"?{query}" if query else ""),
        headers=headers or {},
        data=body,
    )
    who = Credentials(KEY_ID, SECRET)
    if expires is None:
        SigV4Auth(who, service, region).add_auth(request)
    else:
        SigV4QueryAuth(who, service, region, expires=expires).add_auth(request)
    return Made(request)


def as_json() -> Made:
    return sign(headers=JSON_HEADERS, body=BODY)


def as_query() -> Made:
    kind = {"Content-Type": "application/x-www-form-urlencoded; charset=utf-8"}
    return sign(path="/123456789012/orders.fifo", headers=kind, body=FORM)


def as_cbor() -> Made:
    headers = {
        "Content-Type": "application/x-amz-cbor-1.1",
        "X-Amz-Target": "Kinesis_20131202.PutRecord",
    }
    return sign(headers=headers, body=b"\xbf\x00\xff\xfe", service="kinesis")


def as_get() -> Made:
    query = "Action=SendMessage&MessageBody=a%20b%2Bc%2F%26~%C3%A9&Empty=&B=2&B=1"
    return sign("GET", "/123456789012/orders", query=query)


def as_presigned() -> Made:
    return sign("GET", "/123456789012/orders", query="Action=ReceiveMessage", expires=60)


WAYS = [as_json, as_query, as_cbor, as_get, as_presigned]
Way = Callable[[], Made]


def service_of(way: Way) -> str:
    return "kinesis" if way is as_cbor else "sqs"


@pytest.mark.parametrize("way", WAYS)
def test_request_signed_by_botocore_is_accepted(way):
    assert way().check(service=service_of(way)) == KEY_ID


def _flip_hex(text: bytes, at: int) -> bytes:
    changed = b"0" if text[at : at + 1] != b"0" else b"1"
    return text[:at] + changed + text[at + 1 :]


def change_method(made: Made) -> None:
    made.method = "GET" if made.method == "POST" else "POST"


def change_path(made: Made) -> None:
    made.path = made.path.rstrip("/") + "x" if made.path != "/" else "/x"


def change_body(made: Made) -> None:
    made.body = made.body + b" " if made.body else b"x"


def change_query(made: Made) -> None:
    made.query = made.query + "&More=1" if made.query else "More=1"


def change_host(made: Made) -> None:
    made.headers[b"host"] = b"elsewhere.example.org"


def change_signed_header(made: Made) -> None:
    name = b"content-type" if b"content-type" in made.headers else b"host"
    made.headers[name] = made.headers[name] + b"x"


def add_amz_header(made: Made) -> None:
    made.headers[b"x-amz-target-of-mine"] = b"1"


def drop_signed_header(made: Made) -> None:
    del made.headers[b"host"]


def change_signature(made: Made) -> None:
    if b"authorization" in made.headers:
        header = made.headers[b"authorization"]
        made.headers[b"authorization"] = _flip_hex(header, len(header) - 1)
    else:
        query = made.query.encode()
        at = query.index(b"X-Amz-Signature=") + len(b"X-Amz-Signature=")
        made.query = _flip_hex(query, at).decode()


def change_scope(made: Made) -> None:
    for old, new in (("eu-west-1", "us-east-1"),):
        made.query = made.query.replace(old, new)
        header = made.headers.get(b"authorization", b"")
        made.headers[b"authorization"] = header.replace(old.encode(), new.encode())
        if not header:
            del made.headers[b"authorization"]


MUTATIONS = [
    change_method,
    change_path,
    change_body,
    change_query,
    change_host,
    change_signed_header,
    add_amz_header,
    drop_signed_header,
    change_signature,
    change_scope,
]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("mutation", MUTATIONS)
def test_altered_request_is_rejected(way, mutation):
    made = way()

    mutation(made)

    with pytest.raises(AwsError) as refused:
        made.check(service=service_of(way))
    assert refused.value.fault is WRONG_SIGNATURE


@pytest.mark.parametrize("way", WAYS)
def test_wrong_secret_is_rejected(way):
    with pytest.raises(AwsError) as refused:
        way().check(SECRET[:-1] + "!", service=service_of(way))
    assert refused.value.fault is WRONG_SIGNATURE


@pytest.mark.parametrize("way", [as_json, as_query, as_cbor, as_get])
@pytest.mark.parametrize(
    ("after_s", "taken"), [(299, True), (301, False), (-299, True), (-301, False)]
)
def test_signature_is_valid_for_five_minutes_either_way(way, after_s, taken):
    made, service = way(), service_of(way)

    if taken:
        made.check(after_s=after_s, service=service)
    else:
        with pytest.raises(AwsError, match=r"Signature (expired|not yet current)"):
            made.check(after_s=after_s, service=service)


def test_presigned_url_is_valid_until_it_expires():
    as_presigned().check(after_s=59)

    with pytest.raises(AwsError, match="Signature expired"):
        as_presigned().check(after_s=61)


def test_signature_for_other_service_is_rejected():
    with pytest.raises(AwsError, match="correct service: 'kinesis'"):
        as_json().check(service="kinesis")


def test_any_region_is_accepted():
    assert sign(headers=JSON_HEADERS, body=BODY, region="mars-north-7").check() == KEY_ID


def test_header_that_selects_operation_must_be_signed():
    made = as_json()
    header = made.headers[b"authorization"]

    made.headers[b"authorization"] = header.replace(b";x-amz-target", b"")

    with pytest.raises(AwsError, match="must be in SignedHeaders"):
        made.check()


@pytest.mark.parametrize("name", [b"hostile", b"amz-sdk-invocation-id", b"x-amzn-trace-id"])
def test_other_headers_may_be_unsigned(name):
    made = as_json()
    made.headers[name] = b"1"

    assert made.check() == KEY_ID


def test_repeated_spaces_in_header_are_collapsed():
    made = sign(headers={**JSON_HEADERS, "X-Amz-Meta": "a   b"}, body=BODY)

    assert made.check() == KEY_ID


@pytest.mark.parametrize("value", ["100% of it: %s %b", " a ", "a: b", "%"])
def test_percent_signs_and_colons_in_headers_are_signed(value):
    made = sign(headers={**JSON_HEADERS, "X-Amz-Meta%b": value, "X-Amz-%%": "1"}, body=BODY)

    assert made.check() == KEY_ID


def test_requests_sharing_cached_scope_are_verified_separately():
    """The parsed header is cached; the bodies differ, and so must the signatures."""
    first, second = as_json(), as_json()
    second.body = BODY.replace("orders", "others").encode()

    assert first.check() == KEY_ID
    with pytest.raises(AwsError) as refused:
        second.check()
    assert refused.value.fault is WRONG_SIGNATURE


def test_parts_of_authorization_header_may_be_reordered():
    made = as_json()
    scheme, _, parts = made.headers[b"authorization"].partition(b" ")

    made.headers[b"authorization"] = scheme + b" " + b", ".join(reversed(parts.split(b", ")))

    assert made.check() == KEY_ID


@pytest.mark.parametrize("name", ["x-amz-security-token"])
def test_temporary_credentials_are_rejected(name):
    made = sign(headers={**JSON_HEADERS, name: "FwoG"}, body=BODY)

    with pytest.raises(AwsError) as refused:
        made.check()
    assert refused.value.fault is UNKNOWN_CLIENT


def test_missing_signature_is_reported():
    made = as_json()
    del made.headers[b"authorization"]

    with pytest.raises(AwsError) as refused:
        made.check()
    assert refused.value.fault is MISSING_SIGNATURE


def test_signature_in_both_header_and_query_is_rejected():
    made = as_presigned()
    made.headers[b"authorization"] = as_json().headers[b"authorization"]

    with pytest.raises(AwsError, match="Found both"):
        made.check()


SCOPE = f"{KEY_ID}/20261122/eu-west-1/sqs/aws4_request"
INCOMPLETE = [
    "AWS4-HMAC-SHA256 ",
    f"AWS4-HMAC-SHA256 Credential={SCOPE}",
    f"AWS4-HMAC-SHA256 Credential={SCOPE}, SignedHeaders=host",
    f"AWS4-HMAC-SHA256 Credential={KEY_ID}, SignedHeaders=host, Signature=00",
    f"AWS4-HMAC-SHA256 Credential={SCOPE}/x, SignedHeaders=host, Signature=00",
    "AWS4-HMAC-SHA256 Credential=//////, SignedHeaders=host, Signature=00",
]


@pytest.mark.parametrize("header", INCOMPLETE)
def test_incomplete_signature_is_reported(header):
    made = as_json()
    made.headers[b"authorization"] = header.encode()

    with pytest.raises(AwsError) as refused:
        made.check()
    assert refused.value.fault is INCOMPLETE_SIGNATURE


@pytest.mark.parametrize(
    "moment", ["", "20261322T000000Z", "20261122T250000Z", "now", "2026-11-22"]
)
def test_malformed_date_is_rejected(moment):
    made = as_json()
    made.headers[b"x-amz-date"] = moment.encode()

    with pytest.raises(AwsError) as refused:
        made.check()
    assert refused.value.fault in (INCOMPLETE_SIGNATURE, WRONG_SIGNATURE)


@pytest.mark.parametrize("expires", ["0", "-1", "604801", "x", "\u0661", "9" * 400])
def test_invalid_expiry_of_presigned_url_is_rejected(expires):
    made = as_presigned()
    made.query = made.query.replace("X-Amz-Expires=60", f"X-Amz-Expires={quote(expires)}")

    with pytest.raises(AwsError) as refused:
        made.check()
    assert refused.value.fault is INCOMPLETE_SIGNATURE


BYTES = st.binary(max_size=60)


@given(header=BYTES, moment=BYTES, query=BYTES, path=st.text(max_size=20), body=BYTES)
def test_arbitrary_input_raises_only_aws_errors(header, moment, query, path, body):
    made = as_json()
    made.headers |= {b"authorization": b"AWS4-HMAC-SHA256 " + header, b"x-amz-date": moment}
    made.body = body
    request = FastRequest(path.split("/"), made.headers, query, lambda: True, body)

    with pytest.raises(AwsError):
        SignedRequest(request, "POST", "sqs").check(b"secret", 0)


@given(
    st.dictionaries(
        st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=8),
        st.text(st.characters(codec="utf-8"), max_size=8),
        max_size=4,
    ),
    st.text(max_size=30),
)
def test_arbitrary_query_and_body_can_be_signed(parameters: dict[str, str], body: str):
    query = "&".join(f"{quote(n, safe='')}={quote(v, safe='')}" for n, v in parameters.items())
    encoded: Any = body.encode(errors="ignore")

    assert sign("POST", "/", query=query, body=encoded).check() == KEY_ID


def test_signature_date_is_utc():
    moment = datetime(2026, 11, 22, 1, 2, 3, tzinfo=UTC)

    assert moment_s("20261122T010203Z") == int(moment.timestamp())
