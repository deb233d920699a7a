"""Webhook requests: signatures, headers and bodies; and encryption of secrets."""

import json
from typing import Any
from urllib.parse import unquote

import h11
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import SecretStr

from api.cli.up.data_directory import own_secret_keys
from api.config.settings import Settings
from consumers.webhooks.payload import render
from consumers.webhooks.signature import Signer
from storage.access.secret_box import SecretBox, new_key
from storage.domain.errors import SecretsOff, SecretUnreadable
from storage.domain.webhooks import BodyFormat, Event, PayloadLocation, Secret

WORD = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
STORES: dict[str, Any] = {"redis_url": "redis://none", "database_url": "postgresql://none"}


def test_signature_matches_example_of_specification():
    signer = Signer([Secret(WORD, 0)])

    signature = signer.signature(
        "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}', 0
    )

    assert signature == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


TEXTS = st.text(max_size=20) | st.sampled_from(["k ", " k", "  ", "\tk", "a\r\nb: c", "\x00", "é"])


@given(TEXTS, TEXTS, st.binary(max_size=20), TEXTS, TEXTS, st.sampled_from(BodyFormat))
@example("k ", "", b"", "", "", BodyFormat.BODY)
def test_every_event_renders_to_a_legal_request(key, group, value, name, content_type, form):
    """A record key that ended with a space made an illegal header, and its shard failed for ever."""
    event = Event(
        event_id="e1",
        kind="stream.record",
        source="group:g",
        payload=b"x",
        content_type=content_type,
        headers=((name, "", value),),
        at_ms=0,
        key=key,
        group=group,
    )

    headers, _ = render(event, form, "hook", 1)

    for header in headers:
        h11.Request(method="POST", target="/", headers=[("host", "h"), header])


def test_spaces_at_the_edges_of_a_key_arrive():
    event = Event(
        event_id="e1",
        kind="stream.record",
        source="group:g",
        payload=b"x",
        content_type="",
        at_ms=0,
        key=" k ",
    )

    headers, _ = render(event, BodyFormat.BODY, "hook", 1)

    assert unquote(dict(headers)["millstream-key"]) == " k "


def test_expired_secret_no_longer_signs():
    signer = Signer([Secret(WORD, 0), Secret(WORD, 0, expires_at_ms=10)])

    assert len(signer.signature("a", 0, b"", 9).split()) == 2
    assert len(signer.signature("a", 0, b"", 10).split()) == 1


@given(st.binary(max_size=50), st.text(max_size=20), st.text(max_size=20), st.binary(max_size=20))
def test_headers_are_valid_http_for_any_message(payload, content_type, name, value):
    event = Event(
        event_id="a",
        kind="queue.message",
        source="queue:q",
        payload=payload,
        content_type=content_type,
        headers=((name, "", value),),
        key=name,
        location=PayloadLocation(1, 2),
    )

    headers, body = render(event, BodyFormat.BODY, "hook", 1)
    _, enveloped = render(event, BodyFormat.ENVELOPE, "hook", 1)

    assert body == payload
    json.loads(enveloped)
    for key, word in headers:
        assert all(0x21 <= ord(letter) <= 0x7E for letter in key)
        assert all(0x20 <= ord(letter) <= 0x7E for letter in word)


def test_request_continues_the_trace_in_a_new_span():
    parent = b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    event = Event(
        event_id="a",
        kind="queue.message",
        source="queue:q",
        payload=b"",
        headers=(("traceparent", "", parent), ("tracestate", "", b"a=b")),
    )

    told = dict(render(event, BodyFormat.BODY, "hook", 1)[0])

    version, trace, span, flags = told["traceparent"].split("-")
    assert (version, trace, flags) == ("00", "4bf92f3577b34da6a3ce929d0e0e4736", "01")
    assert span != "00f067aa0ba902b7"
    assert told["tracestate"] == "a=b"


@given(st.binary(max_size=100), st.text(max_size=20))
def test_sealed_secret_opens_for_its_purpose(secret, about):
    box = SecretBox([new_key()])

    assert box.decrypt(box.encrypt(secret, about), about) == secret


def test_sealed_secret_is_bound_to_key_purpose_and_content():
    box = SecretBox([new_key()])
    sealed = box.encrypt(b"secret", "one")

    for opener, told, about in (
        (box, sealed, "other"),
        (box, sealed[:-1] + bytes([sealed[-1] ^ 1]), "one"),
        (box, b"\x02" + sealed[1:], "one"),
        (box, b"", "one"),
        (SecretBox([new_key()]), sealed, "one"),
    ):
        with pytest.raises(SecretUnreadable):
            opener.decrypt(told, about)
    assert b"secret" not in sealed


def test_first_key_seals_and_all_keys_open():
    old, new = new_key(), new_key()
    before = SecretBox([old]).encrypt(b"secret", "one")
    both = SecretBox([new, old])

    assert both.decrypt(before, "one") == b"secret"
    assert SecretBox([new]).decrypt(both.encrypt(b"secret", "one"), "one") == b"secret"


def test_sealing_without_key_is_rejected():
    with pytest.raises(SecretsOff):
        SecretBox().encrypt(b"secret", "one")


@pytest.mark.parametrize("key", ["short", "c2hvcnQ=", "not base64 !"])
def test_invalid_key_is_rejected_without_showing_it(key):
    with pytest.raises(ValueError, match="32 bytes in base64") as refused:
        SecretBox([key])

    assert key not in str(refused.value)


def test_keys_come_from_setting_or_file(tmp_path):
    key, two = new_key(), new_key()
    path = tmp_path / "keys"
    path.write_text(f"{key}\n{two}\n")

    storage = Settings(
        **STORES, secret_keys=SecretStr(f"{two},{key}"), secret_keys_file=path
    ).storage()
    from_file = Settings(**STORES, secret_keys_file=path).storage()

    assert storage.secret_keys == (two, key)
    assert from_file.secret_keys == (key, two)
    assert key not in repr(storage)


@pytest.mark.parametrize(
    "setting", [{"secret_keys": "x"}, {"secret_keys_file": "/none"}, {"webhook_allow": "a b/9:x"}]
)
def test_invalid_secret_settings_are_rejected(setting):
    with pytest.raises(ValueError, match=r"secret|webhook_allow"):
        Settings(**(STORES | setting)).storage()


def test_own_key_is_created_once_with_private_mode(tmp_path):
    path = own_secret_keys(tmp_path)
    first = path.read_text()

    again = own_secret_keys(tmp_path)

    assert path.stat().st_mode & 0o777 == 0o600
    assert again.read_text() == first
    SecretBox([first.strip()])
