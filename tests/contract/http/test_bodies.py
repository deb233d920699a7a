"""Bodies of any coding and content type, over the network."""

import gzip
import json
import time
import zlib

import httpx
import pyarrow as pa
import pytest

from storage.domain import limits

CODERS = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": lambda body: pa.compress(body, codec="brotli", asbytes=True),
    "zstd": lambda body: pa.compress(body, codec="zstd", asbytes=True),
}
GITHUB = {"content-type": "application/json", "x-github-event": "push", "x-hub-signature-256": "s"}


@pytest.fixture
def queue(client, name) -> str:
    client.put(f"/v1/queues/{name}").raise_for_status()
    return f"/v1/queues/{name}"


@pytest.fixture
def stream(client, name) -> str:
    client.put(f"/v1/streams/{name}").raise_for_status()
    return f"/v1/streams/{name}"


def received(client, queue):
    [message] = client.post(f"{queue}/receive").json()["messages"]
    return message


@pytest.mark.parametrize("coding", CODERS)
def test_coded_bodies_are_accepted_by_both_planes(client, queue, coding):
    """A compressed body was stored as it came, or called malformed JSON."""
    code, headers = CODERS[coding], {"content-encoding": coding, "content-type": "application/json"}
    sent = client.post(f"{queue}/messages", content=code(b'{"body": "hello"}'), headers=headers)
    changed = client.patch(queue, content=code(b'{"attempts_max": 3}'), headers=headers)

    assert (sent.status_code, changed.status_code) == (201, 200), sent.text + changed.text
    assert received(client, queue)["body"] == "hello"
    assert changed.json()["attempts_max"] == 3


@pytest.mark.parametrize("coding", CODERS)
def test_bomb_is_rejected_quickly_on_both_planes(client, queue, coding):
    bomb = CODERS[coding](bytes(300 * 2**20))
    headers = {"content-encoding": coding, "content-type": "application/json"}
    begun = time.monotonic()

    answers = [
        client.post(f"{queue}/messages", content=bomb, headers=headers),
        client.patch(queue, content=bomb, headers=headers),
    ]

    assert [answer.status_code for answer in answers] == [413, 413]
    assert {answer.json()["code"] for answer in answers} == {"request_too_large"}
    assert time.monotonic() - begun < 20


@pytest.mark.parametrize("path", ["messages", ""])
def test_unknown_or_damaged_coding_is_refused(client, queue, path):
    call = client.post if path else client.patch
    target = f"{queue}/{path}".rstrip("/")

    unknown = call(target, content=b"{}", headers={"content-encoding": "compress"})
    damaged = call(target, content=b"{}", headers={"content-encoding": "gzip"})

    assert (unknown.status_code, damaged.status_code) == (415, 400)
    assert unknown.headers["accept-encoding"] == "gzip, deflate, br, zstd"


def test_quota_counts_decoded_bytes(client, queue):
    headers = {"content-encoding": "gzip"}
    body = b"x" * (limits.MESSAGE_BYTES_MAX + 1)

    answer = client.post(f"{queue}/messages", content=gzip.compress(body), headers=headers)

    assert (answer.status_code, answer.json()["code"]) == (413, "message_too_large")


def raw_answer(url: str, path: str, accepted: str | None) -> httpx.Response:
    """GET without httpx's own Accept-Encoding, and without decoding."""
    headers = {} if accepted is None else {"accept-encoding": accepted}
    with httpx.Client(base_url=url, headers={"accept-encoding": ""}) as plain:
        request = plain.build_request("GET", path, headers=headers)
        if accepted is None:
            del request.headers["accept-encoding"]
        answer = plain.send(request, stream=True)
        answer._content = b"".join(answer.iter_raw())
        return answer


@pytest.mark.parametrize("plane", ["hot", "control", "dashboard"])
def test_large_answers_are_compressed_on_request(client, service_url, queue, plane):
    client.post(f"{queue}/messages", json={"body": "x" * 5000}).raise_for_status()
    path = {"hot": f"{queue}/messages", "control": "/openapi.json", "dashboard": "/ui"}[plane]

    plain, coded = raw_answer(service_url, path, None), raw_answer(service_url, path, "gzip, br")

    assert "content-encoding" not in plain.headers
    assert coded.headers["content-encoding"] == "gzip"
    assert "accept-encoding" in coded.headers["vary"].lower()
    assert int(coded.headers["content-length"]) == len(coded.content) < len(plain.content)
    decoded = gzip.decompress(coded.content)
    assert plane == "dashboard" or decoded == plain.content


def test_small_answers_are_sent_as_they_are(service_url, queue):
    assert "content-encoding" not in raw_answer(service_url, f"{queue}/messages", "gzip").headers


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("application/json", b'{"body": 1, "lost": 2}'),
        ("application/json; charset=utf-8", b"[1, 2]"),
        ("application/json", b"not json"),
        ("application/x-ndjson", b"1\n2\n"),
        ("application/msgpack", b"\x81\xa1a\x01"),
        ("application/x-www-form-urlencoded", b"Body=hi&From=%2B1"),
        ("application/octet-stream", bytes(range(256))),
        ("multipart/form-data; boundary=x", b"--x--"),
        ("text/plain", "grüße".encode()),
    ],
)
def test_raw_endpoints_keep_body_and_content_type(client, queue, stream, content_type, body):
    """A third party's JSON was taken for the envelope, and lost all but its `body`."""
    headers = {"content-type": content_type}
    accept = {"accept": "application/msgpack"}

    sent = client.post(f"{queue}/messages/raw", content=body, headers=headers)
    appended = client.post(f"{stream}/records/raw", content=body, headers=headers)
    message = msgpack(client.post(f"{queue}/receive", headers=accept))["messages"][0]
    record = msgpack(client.get(f"{stream}/records", headers=accept))["records"][0]

    assert (sent.status_code, appended.status_code) == (201, 201), sent.text + appended.text
    assert (message["content_type"], record["content_type"]) == (content_type, content_type)
    assert (as_bytes(message["body"]), as_bytes(record["data"])) == (body, body)


def msgpack(answer):
    import msgspec

    return msgspec.msgpack.decode(answer.raise_for_status().content)


def as_bytes(body) -> bytes:
    return body if isinstance(body, bytes) else body.encode() if isinstance(body, str) else b""


def test_raw_endpoints_copy_named_headers_and_no_credentials(client, queue, stream):
    query = {"keep_headers": "x-github-, X-Hub-,a,cookie", "group": "g"}
    headers = {**GITHUB, "authorization": "Bearer s", "cookie": "a=b", "accept-language": "en"}
    client.put(f"{queue}-fifo", json={"type": "fifo", "deduplicate_by_content": True})

    sent = client.post(f"{queue}-fifo/messages/raw", params=query, json={}, headers=headers)
    appended = client.post(
        f"{stream}/records/raw", params={"key": "k", "keep_headers": "x-"}, json={}, headers=GITHUB
    )
    message = received(client, f"{queue}-fifo")
    [record] = client.get(f"{stream}/records").json()["records"]

    assert (sent.status_code, appended.status_code) == (201, 201), sent.text + appended.text
    assert message["group"] == "g"
    assert message["headers"]["x-github-event"] == "push"
    assert message["headers"]["x-hub-signature-256"] == "s"
    assert not {"authorization", "cookie"} & message["headers"].keys()
    assert record["key"] == "k"
    assert record["headers"]["x-github-event"] == "push"


def test_raw_endpoint_rejects_unknown_parameters_and_headers(client, queue):
    parameter = client.post(f"{queue}/messages/raw?grup=g", content=b"x")
    header = client.post(f"{queue}/messages/raw", content=b"x", headers={"millstream-grup": "g"})
    elsewhere = client.post(f"{queue}/messages?group=g", content=b"x")

    assert [answer.status_code for answer in (parameter, header, elsewhere)] == [422] * 3
    assert "did you mean 'group'" in parameter.json()["detail"]


def test_rejected_json_names_the_raw_endpoint(client, queue, stream):
    answers = [
        client.post(f"{queue}/messages", json={"event": "push", "body": 1}),
        client.post(f"{stream}/records", json=[1, 2]),
    ]

    assert [answer.status_code for answer in answers] == [422, 422]
    assert "/messages/raw" in answers[0].json()["detail"]
    assert "/records/raw" in answers[1].json()["detail"]


def test_message_that_is_not_its_content_type_is_still_readable(client, queue):
    client.post(
        f"{queue}/messages/raw", content=b"{", headers={"content-type": "application/json"}
    ).raise_for_status()

    assert json.dumps(received(client, queue))


def test_raw_send_is_idempotent(client, queue):
    headers = {"idempotency-key": "delivery-1"}

    sent = [client.post(f"{queue}/messages/raw", content=b"x", headers=headers) for _ in "12"]

    assert [answer.json()["duplicate"] for answer in sent] == [False, True]


@pytest.mark.parametrize("prefixes", ["é", "x-,", ",", "日本", "x-, "])
def test_invalid_header_prefixes_are_rejected(client, queue, stream, prefixes):
    answers = [
        client.post(f"{path}/raw", params={"keep_headers": prefixes}, content=b"x")
        for path in (f"{queue}/messages", f"{stream}/records")
    ]

    assert [answer.status_code for answer in answers] == [422, 422]
    assert answers[0].json()["errors"][0]["pointer"] == "/keep_headers"


@pytest.mark.parametrize("key", ["é", "日本語", "a b&c"])
def test_raw_key_of_query_is_any_text(client, stream, key):
    answer = client.post(f"{stream}/records/raw", params={"key": key}, content=b"x")

    assert answer.status_code == 201, answer.text
    assert client.get(f"{stream}/records").json()["records"][0]["key"] == key
