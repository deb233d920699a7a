"""JWTs of external issuers: principals, validation, key sets and the setting."""

import asyncio
import base64
import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import RSAAlgorithm

from api.auth.jwt import JwtIssuers
from api.cli.config.process_settings import settings_from_cli
from api.cli.errors import CliError
from api.config.jwt_issuers import JwtIssuerSetting, read_issuers
from storage.domain import limits
from storage.domain.access.permissions import Action, Role
from storage.domain.clock import ManualClock
from storage.domain.errors import Unauthenticated
from tests.conditions import PATIENCE_S
from tests.jwt_issuer import KEYS, RSA_KEY, KeyServer, jwk, jwks, running_key_server

ISSUER, AUDIENCE = "https://login.example.com/", "millstream"
OTHER_KEY = rsa.generate_private_key(public_exponent=65_537, key_size=2_048)
SHORT_KEY = rsa.generate_private_key(public_exponent=65_537, key_size=1_024)


@pytest.fixture
async def server() -> AsyncIterator[KeyServer]:
    async with running_key_server() as served:
        yield served


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def issuers(server: KeyServer, clock: ManualClock) -> JwtIssuers:
    return JwtIssuers([issuer(server)], clock)


def issuer(server: KeyServer, **other: Any) -> JwtIssuerSetting:
    said = {"namespace": "default", "roles_claim": "groups"} | other
    return JwtIssuerSetting(issuer=ISSUER, audience=AUDIENCE, jwks_url=server.url, **said)


@pytest.fixture
def token(clock: ManualClock) -> Callable[..., str]:
    """Make a valid token, except for the given claims."""

    def make(
        kid: str | None = "rsa", key: Any = None, algorithm: str | None = None, **claims: Any
    ) -> str:
        own_key, _, own_algorithm = KEYS.get(kid or "rsa", KEYS["rsa"])
        now_s = clock.now_ms() // 1000
        good = {
            "iss": ISSUER,
            "aud": AUDIENCE,
            "sub": "ann",
            "exp": now_s + 600,
            "groups": ["producer", "people"],
        }
        fields = {name: value for name, value in (good | claims).items() if value is not None}
        return jwt.encode(
            fields, key or own_key, algorithm or own_algorithm, headers={"kid": kid} if kid else {}
        )

    return make


@pytest.mark.parametrize("kid", list(KEYS))
async def test_valid_token_yields_principal(issuers, token, clock, kid):
    principal = await issuers.principal_of(token(kid))

    assert (principal.name, principal.namespace, principal.credential) == ("ann", "default", "")
    assert principal.expires_ms == clock.now_ms() + 660_000
    assert principal.policy.allows(Action.QUEUE_SEND, "orders")
    assert not principal.policy.allows(Action.QUEUE_RECEIVE, "orders")
    assert not principal.all_namespaces


async def test_principal_is_cached_per_token(issuers, token, server):
    word = token()

    first, again = await issuers.principal_of(word), await issuers.principal_of(word)

    assert first is again
    assert server.requests == 1


WRONG = {
    "wrong audience": {"aud": "another"},
    "no audience": {"aud": None},
    "wrong issuer": {"iss": "https://evil.example.com/"},
    "no issuer": {"iss": None},
    "expired": {"exp": 1_699_999_939},
    "no expiry": {"exp": None},
    "expiry is not a number": {"exp": "never"},
    "expiry overflows": {"exp": 1e300},
    "not valid yet": {"nbf": 1_700_000_061},
    "empty subject": {"sub": ""},
    "no subject": {"sub": None},
    "control characters in subject": {"sub": "a\x1b[2J"},
    "key of another issuer": {"key": OTHER_KEY},
    "other algorithm with the same key": {"algorithm": "RS512"},
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
async def test_invalid_token_is_rejected(issuers, token, wrong):
    with pytest.raises(Unauthenticated):
        await issuers.principal_of(token(**wrong))


@pytest.mark.parametrize("claims", [{"exp": 1_699_999_941}, {"nbf": 1_700_000_060}])
async def test_clock_skew_of_one_minute_is_accepted(issuers, token, claims):
    await issuers.principal_of(token(**claims))


async def test_cached_token_is_rejected_after_expiry(issuers, token, clock):
    word = token()
    await issuers.principal_of(word)

    clock.advance(ms=660_000)

    with pytest.raises(Unauthenticated, match="expired"):
        await issuers.principal_of(word)


def part(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


async def test_unsigned_token_is_rejected(issuers, token):
    _, claims, _ = token().split(".")

    for algorithm in ("none", "None", "NONE", ""):
        for signature in ("", "AAAA"):
            word = f"{part({'alg': algorithm, 'kid': 'rsa'})}.{claims}.{signature}"
            with pytest.raises(Unauthenticated):
                await issuers.principal_of(word)


async def test_token_signed_with_public_key_as_secret_is_rejected(issuers, token):
    """Key confusion: HMAC with the public key as the secret."""
    import hashlib
    import hmac

    public = RSA_KEY.public_key()
    _, claims, _ = token().split(".")
    for form in (PublicFormat.SubjectPublicKeyInfo, PublicFormat.PKCS1):
        secret = public.public_bytes(Encoding.PEM, form)
        for algorithm in ("HS256", "RS256"):
            signed = f"{part({'alg': algorithm, 'kid': 'rsa'})}.{claims}"
            digest = hmac.new(secret, signed.encode(), hashlib.sha256).digest()
            signature = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
            with pytest.raises(Unauthenticated):
                await issuers.principal_of(f"{signed}.{signature}")


async def test_symmetric_key_of_issuer_is_not_used(issuers, token, server):
    secret = b"s" * 32
    shared = {"kty": "oct", "kid": "shared", "k": base64.urlsafe_b64encode(secret).decode()}
    server.body = json.dumps({"keys": [shared]}).encode()

    for algorithm in ("HS256", "RS256"):
        word = token("shared", secret, "HS256").split(".")
        word[0] = part({"alg": algorithm, "kid": "shared"})
        with pytest.raises(Unauthenticated):
            await issuers.principal_of(".".join(word))


async def test_short_rsa_key_is_not_used(issuers, token, server):
    server.body = json.dumps({"keys": [jwk("short", SHORT_KEY, RSAAlgorithm)]}).encode()

    with pytest.warns(jwt.warnings.InsecureKeyLengthWarning):
        word = token("short", SHORT_KEY)
    with pytest.raises(Unauthenticated):
        await issuers.principal_of(word)


async def test_encryption_key_is_not_used(issuers, token, server):
    server.body = json.dumps({"keys": [jwk("rsa", RSA_KEY, RSAAlgorithm, use="enc")]}).encode()

    with pytest.raises(Unauthenticated):
        await issuers.principal_of(token())


async def test_truncated_or_altered_token_is_rejected(issuers, token):
    word = token("ed")
    await issuers.principal_of(word)

    for place in range(0, len(word), 7):
        other = "A" if word[place] != "A" else "B"
        for wrong in (word[:place], word[:place] + other + word[place + 1 :]):
            with pytest.raises(Unauthenticated):
                await issuers.principal_of(wrong)


@pytest.mark.parametrize("text", ["", "..", "a.b.c", "é.é.é", "[" * 2_000 + "." * 2])
async def test_text_that_is_not_a_token_is_rejected(issuers, text):
    with pytest.raises(Unauthenticated):
        await issuers.principal_of(text)


async def test_deeply_nested_token_is_rejected(issuers):
    deep = base64.urlsafe_b64encode(b"[" * 2_500 + b"]" * 2_500).decode().rstrip("=")

    with pytest.raises(Unauthenticated):
        await issuers.principal_of(f"{deep}.e30.AAAA")


async def test_oversized_token_is_rejected_before_parsing(issuers, token, server):
    word = token(more="x" * limits.CREDENTIAL_TOKEN_CHARACTERS_MAX)

    with pytest.raises(Unauthenticated, match="too long"):
        await issuers.principal_of(word)

    assert server.requests == 0


async def test_token_is_rejected_when_no_issuer_is_configured(token):
    with pytest.raises(Unauthenticated, match="not accepted"):
        await JwtIssuers([]).principal_of(token())


# Key sets


async def test_unknown_key_ids_fetch_keys_once_per_pause(issuers, token, server, clock):
    words = [token(f"unknown-{number}") for number in range(50)]

    answers = await asyncio.gather(*map(issuers.principal_of, words), return_exceptions=True)
    clock.advance(ms=limits.JWKS_PAUSE_MS - 1)
    with pytest.raises(Unauthenticated):
        await issuers.principal_of(words[0])

    assert all(isinstance(answer, Unauthenticated) for answer in answers)
    assert server.requests == 1


async def test_new_key_is_fetched_when_token_names_it(issuers, token, server, clock):
    server.body = jwks("rsa")
    await issuers.principal_of(token())
    server.body = jwks("rsa", "ec")
    clock.advance(ms=limits.JWKS_PAUSE_MS)

    await issuers.principal_of(token("ec"))


async def test_withdrawn_key_is_rejected_after_refresh(issuers, token, server, clock):
    word = token()
    await issuers.principal_of(word)
    server.body = jwks("ec")
    clock.advance(ms=limits.JWKS_AGE_MS)

    await issuers.principal_of(word)  # the keys are refreshed in the background
    await _until(lambda: server.requests == 2)
    await _refused(issuers, word)


async def test_tokens_are_rejected_when_keys_are_too_stale(issuers, token, server, clock):
    word = token(exp=clock.now_ms() // 1000 + 100_000)
    await issuers.principal_of(word)
    server.status = "500 No"
    clock.advance(ms=limits.JWKS_STALE_MS_MAX - 1)
    await issuers.principal_of(word)
    await _until(lambda: server.requests == 2)

    clock.advance(ms=limits.JWKS_RETRY_MS)

    with pytest.raises(Unauthenticated):
        await issuers.principal_of(word)


@pytest.mark.parametrize(
    ("status", "headers", "body"),
    [
        ("302 Found", "location: /elsewhere\r\n", b""),
        ("404 Not Found", "", jwks()),
        ("200 OK", "", b"{"),
        ("200 OK", "", b"[]"),
        ("200 OK", "", b'{"keys": {}}'),
        ("200 OK", "", b'{"keys": [1, {}, {"kty": "RSA"}, {"kty": "EC", "kid": 5}]}'),
        ("200 OK", "", jwks()[:-1] + b" " * limits.JWKS_BYTES_MAX + b"}"),
    ],
)
async def test_invalid_key_set_is_rejected(issuers, token, server, status, headers, body):
    server.status, server.headers, server.body = status, headers, body

    with pytest.raises(Unauthenticated):
        await issuers.principal_of(token())

    assert server.requests == 1


async def test_concurrent_callers_share_one_key_fetch(issuers, token, server):
    server.hold = asyncio.Event()
    callers = [asyncio.create_task(issuers.principal_of(token(kid))) for kid in KEYS]
    await _until(lambda: server.requests == 1)
    callers[0].cancel()

    server.hold.set()

    principals = await asyncio.gather(*callers[1:])
    assert [principal.name for principal in principals] == ["ann", "ann"]
    assert server.requests == 1


async def test_token_without_key_id_is_verified_with_only_key(server, token, clock):
    word = token(None)
    with pytest.raises(Unauthenticated):
        await JwtIssuers([issuer(server)], clock).principal_of(word)

    server.body = jwks("rsa")

    await JwtIssuers([issuer(server)], clock).principal_of(word)


# Principals


@pytest.mark.parametrize(
    ("claims", "namespace", "actions"),
    [
        ({"tenant": "acme", "groups": "viewer consumer"}, "acme", {Action.QUEUE_RECEIVE}),
        ({"tenant": "acme", "groups": []}, "acme", set()),
        ({"tenant": "acme", "groups": {"a": 1}}, "acme", set()),
        ({"tenant": "acme", "groups": [1, "owner", None]}, "acme", set()),
    ],
)
async def test_claims_determine_namespace_and_roles(
    server, token, clock, claims, namespace, actions
):
    trusted = issuer(server, namespace=None, namespace_claim="tenant")

    principal = await JwtIssuers([trusted], clock).principal_of(token(**claims))

    assert principal.namespace == namespace
    for action in (Action.QUEUE_RECEIVE, Action.ADMIN_KEYS):
        assert principal.policy.allows(action, "orders") == (action in actions)


@pytest.mark.parametrize("tenant", [None, "", "../etc", 5, ["acme"]])
async def test_token_without_valid_namespace_is_rejected(server, token, clock, tenant):
    trusted = issuer(server, namespace=None, namespace_claim="tenant")

    with pytest.raises(Unauthenticated):
        await JwtIssuers([trusted], clock).principal_of(token(tenant=tenant))


async def test_roles_come_from_claim_path_or_configuration(server, token, clock):
    by_path = issuer(server, roles_claim="realm_access.roles")
    fixed = issuer(server, roles_claim=None, roles=(Role.VIEWER,))
    word = token(realm_access={"roles": ["admin"]})

    admin = await JwtIssuers([by_path], clock).principal_of(word)
    viewer = await JwtIssuers([fixed], clock).principal_of(word)

    assert admin.policy.allows(Action.ADMIN_KEYS, "x")
    assert not viewer.policy.allows(Action.QUEUE_SEND, "x")


# The setting


GOOD = {
    "issuer": ISSUER,
    "audience": AUDIENCE,
    "jwks_url": "https://login.example.com/keys",
    "namespace": "default",
    "roles": ["viewer"],
}


def test_setting_is_list_of_issuers():
    [read] = read_issuers(json.dumps([GOOD]))

    assert (read.issuer, read.roles) == (ISSUER, (Role.VIEWER,))
    assert read_issuers("") == ()


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"jwks_url": "http://login.example.com/keys"}, "jwks_url must use https"),
        ({"jwks_url": "https://user:word@login.example.com/keys"}, "no credentials"),
        ({"jwks_url": "file:///etc/passwd"}, "jwks_url must have a host"),
        ({"jwks_url": "https://[x"}, "jwks_url is not a valid URL"),
        ({"jwks_url": "https://8.8.8.999/keys"}, "jwks_url is not a valid URL"),
        ({"roles": ["owner"]}, "'owner'"),
        ({"roles": None}, "specify roles or roles_claim"),
        ({"roles_claim": "groups"}, "specify roles or roles_claim"),
        ({"namespace": None}, "specify namespace or namespace_claim"),
        ({"namespace": "a/b"}, "a name must be"),
        ({"namespace_claim": "tenant"}, "specify namespace or namespace_claim"),
        ({"audience": ""}, "an issuer requires"),
        ({"typo": 1}, "unknown field `typo`"),
    ],
)
def test_invalid_setting_is_rejected(wrong, why):
    fields = {name: value for name, value in (GOOD | wrong).items() if value is not None}

    with pytest.raises(ValueError, match=f"(?i){re.escape(why)}"):
        read_issuers(json.dumps([fields]))


def test_duplicate_issuer_is_rejected():
    with pytest.raises(ValueError, match="twice"):
        read_issuers(json.dumps([GOOD, GOOD]))


async def _until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not holds():  # noqa: ASYNC110  what it waits for is on the other side of a socket
            await asyncio.sleep(0.001)


async def _refused(issuers: JwtIssuers, word: str) -> None:
    """Wait until the token is rejected."""
    with suppress(Unauthenticated):
        async with asyncio.timeout(PATIENCE_S):
            while True:
                await issuers.principal_of(word)
                await asyncio.sleep(0)


def test_service_does_not_start_with_invalid_issuers(monkeypatch):
    monkeypatch.setenv("MILLSTREAM_JWT_ISSUERS", '[{"issuer": "x"}]')

    with pytest.raises(CliError, match="jwt_issuers"):
        settings_from_cli()
