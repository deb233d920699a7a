"""No secret that is shown to the service is disclosed again."""

import json
import logging

import httpx
import jwt
import pytest

from api.config.settings import Settings
from storage.access.secret_box import new_key
from storage.bootstrap import open_storage
from storage.domain.access.credentials import CredentialRequest, Rights
from storage.domain.access.permissions import LOCAL_ADMINISTRATOR, Role
from storage.domain.clock import SystemClock
from storage.domain.limits import Limits
from storage.settings import StorageSettings
from tests.jwt_issuer import RSA_KEY, running_key_server
from tests.websocket_client import running_server

pytestmark = pytest.mark.one_store
ADMIN = CredentialRequest(name="ada", rights=Rights(roles=(Role.ADMIN,)))


async def test_secrets_appear_in_no_log_error_or_response(redis_url, database_url, caplog, capfd):
    caplog.set_level(logging.DEBUG)
    where = StorageSettings(
        redis_url=redis_url, database_url=database_url, secret_keys=(new_key(),)
    )
    async with (
        running_key_server() as issuer,
        open_storage(where) as storage,
        running_server(storage, Limits(), _settings(issuer.url)) as server,
        httpx.AsyncClient(base_url=server.url) as client,
    ):
        _, key = await storage.credentials.create(LOCAL_ADMINISTRATOR, ADMIN)
        token = _token()
        bearer = {"authorization": f"Bearer {key.token}"}
        pair = (
            await client.post(
                "/v1/keys",
                json={"name": "p", "kind": "access_key", "roles": ["viewer"]},
                headers=bearer,
            )
        ).json()
        session = (await client.post("/v1/sessions", headers=bearer)).headers["set-cookie"]
        ticket = (await client.post("/v1/tickets", headers=bearer)).json()["ticket"]
        wrong = key.token[:-1] + ("a" if key.token[-1] != "a" else "b")
        words = [
            key.token,
            wrong,
            token,
            ticket,
            pair["secret"],
            session.split("=")[1].split(";")[0],
        ]

        said = [repr(await storage.credentials.find(key.id)), repr(key)]
        for word in words:
            for headers in (
                {"authorization": f"Bearer {word}"},
                {"authorization": f"Basic {word}"},
                {"x-api-key": word},
                {"cookie": f"ms_session={word}"},
            ):
                paths = ("/v1/whoami", f"/v1/keys/{pair['id']}", "/v1/audit", "/metrics")
                said += [(await client.get(path, headers=headers)).text for path in paths]
                said.append((await client.post("/v1/keys", headers=headers, content=b"{")).text)
        body = (await client.get("/v1/whoami", headers={"authorization": f"Bearer {token}"})).json()

    out, err = capfd.readouterr()
    everything = "\n".join([*said, caplog.text, out, err])
    assert (body["name"], body["credential"]) == ("ann", None)
    for word in words:
        assert word not in everything
    assert key.secret not in everything


def _settings(jwks_url: str) -> Settings:
    issuer = {
        "issuer": "https://login.example.com/",
        "audience": "millstream",
        "jwks_url": jwks_url,
        "namespace": "default",
        "roles": ["admin"],
    }
    return Settings(auth="keys", jwt_issuers=json.dumps([issuer]))


def _token() -> str:
    claims = {
        "iss": "https://login.example.com/",
        "aud": "millstream",
        "sub": "ann",
        "exp": SystemClock().now_ms() // 1000 + 600,
    }
    return jwt.encode(claims, RSA_KEY, "RS256", headers={"kid": "rsa"})
