"""A service over https, whose stores use TLS too."""

import asyncio
import os
import signal
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import httpx
import pytest
from pydantic import SecretStr
from websockets.asyncio.client import connect
from websockets.typing import Subprotocol

from api.cli.errors import CliError
from api.cli.up.tls import check_tls
from api.config.settings import Settings
from api.websocket.frames import JSON_PROTOCOL
from millstream_client import Millstream
from storage.embedded.processes import child_setup
from tests.cli_commands import millstream
from tests.conditions import PATIENCE_S
from tests.tls import PASSWORD, Certificates, make_certificates, tls_in_front
from tests.websocket_client import Socket

pytestmark = pytest.mark.one_store


LARGE = "".join(map(str, range(40_000)))  # more than a connection buffers


@pytest.fixture(scope="module")
def certificates(tmp_path_factory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def stores(redis_url, database_url, certificates) -> Iterator[dict[str, str]]:
    """Both stores with TLS, as URLs that verify their certificates."""
    with (
        tls_in_front(redis_url, certificates) as redis_port,
        tls_in_front(database_url, certificates) as postgres_port,
    ):
        redis, postgres = urlsplit(redis_url), urlsplit(database_url)
        password = f":{redis.password}@" if redis.password else ""
        whose = f"{postgres.username}@" if postgres.username else ""
        ca = certificates.ca
        yield {
            "REDIS_URL": f"rediss://{password}localhost:{redis_port}?ssl_ca_certs={ca}",
            "DATABASE_URL": f"postgresql://{whose}localhost:{postgres_port}{postgres.path}"
            f"?sslmode=verify-full&sslrootcert={ca}",
        }


@contextmanager
def served(settings: dict[str, str]) -> Iterator[str]:
    """Run `millstream serve` on a free port; yields its URL."""
    process = subprocess.Popen(
        [sys.executable, "-m", "api.cli", "serve", "--port", "0"],
        env={**os.environ, **settings},
        stdout=subprocess.PIPE,
        preexec_fn=child_setup(signal.SIGKILL),
    )
    assert process.stdout is not None
    try:
        first = process.stdout.readline().decode()
        assert "ready at" in first, first
        yield first.split()[-1].replace("127.0.0.1", "localhost")
    finally:
        process.terminate()
        process.wait(PATIENCE_S)
        process.stdout.close()


async def hello(url: str, trust: ssl.SSLContext) -> None:
    """Open a WebSocket, which HTTP/2 does not offer: its client asks for HTTP/1.1."""
    async with connect(
        f"{url.replace('https', 'wss')}/v1/ws",
        ssl=trust,
        subprotocols=[Subprotocol(JSON_PROTOCOL)],
    ) as connection:
        await Socket(connection).hello()


def settings_of(certificates, **more):
    request = {"ssl_certfile": certificates.server, "ssl_keyfile": certificates.server_key, **more}
    return {f"MILLSTREAM_{name.upper()}": str(value) for name, value in request.items()}


def test_everything_works_over_tls(stores, certificates, monkeypatch, tmp_path):
    sealed = {"ssl_keyfile": certificates.sealed_key, "ssl_keyfile_password": PASSWORD}
    with served({**stores, **settings_of(certificates, **sealed)}) as url:
        assert url.startswith("https://")
        with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
            httpx.get(f"{url}/livez")

        with Millstream(url, ca_file=str(certificates.ca)) as client:
            client.queue("orders").create()
            client.queue("orders").send("hello")
            [message] = client.queue("orders").receive()
            client.queue("orders").send(LARGE)
            [large] = client.queue("orders").receive()
        assert message.text == "hello"
        assert large.text == LARGE

        trust = ssl.create_default_context(cafile=str(certificates.ca))
        answer = httpx.get(f"{url}/v1/queues", verify=trust)
        assert answer.headers["strict-transport-security"] == "max-age=31536000"

        asyncio.run(hello(url, trust))
        with httpx.Client(base_url=url, verify=trust, http2=True) as both:
            sent = both.post("/v1/queues/orders/messages", content=LARGE.encode())
            [received] = both.post("/v1/queues/orders/receive").json()["messages"]
        assert (answer.http_version, sent.http_version) == ("HTTP/1.1", "HTTP/2")
        assert received["body"] == LARGE

        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
        ran = millstream("queue", "ls", "--url", url, "--ca-file", str(certificates.ca), "-q")
        assert (ran.code, ran.out) == (0, "orders\n")


def test_client_certificates_can_be_required(stores, certificates):
    asks = {"ssl_ca_certs": certificates.ca, "ssl_cert_reqs": "required"}
    with served({**stores, **settings_of(certificates, **asks)}) as url:
        trust = ssl.create_default_context(cafile=str(certificates.ca))
        with pytest.raises(httpx.TransportError):
            httpx.get(f"{url}/livez", verify=trust)

        trust.load_cert_chain(certificates.client)

        assert httpx.get(f"{url}/livez", verify=trust).status_code == 200
        with httpx.Client(verify=trust, http2=True) as client:
            answer = client.get(f"{url}/livez")
        assert (answer.status_code, answer.http_version) == (200, "HTTP/2")


def test_http2_can_be_switched_off(stores, certificates):
    with served({**stores, **settings_of(certificates, http2="false")}) as url:
        trust = ssl.create_default_context(cafile=str(certificates.ca))
        with httpx.Client(verify=trust, http2=True) as client:
            answer = client.get(f"{url}/livez")

    assert (answer.status_code, answer.http_version) == (200, "HTTP/1.1")


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ({"ssl_keyfile": "server_key"}, "ssl_certfile is required"),
        (
            {"ssl_certfile": "server", "ssl_keyfile": "server_key", "ssl_cert_reqs": "required"},
            "set ssl_ca_certs",
        ),
        ({"ssl_certfile": "server", "ssl_keyfile": "ca"}, "cannot use ssl_certfile"),
        ({"ssl_certfile": "server", "ssl_keyfile": "sealed_key"}, "cannot use ssl_certfile"),
        ({"ssl_certfile": "nothing"}, "cannot use ssl_certfile"),
    ],
)
def test_invalid_tls_settings_are_rejected_before_start(certificates, said, sentence):
    files = {name: str(getattr(certificates, word, word)) for name, word in said.items()}

    with pytest.raises(CliError, match=sentence):
        check_tls(Settings.model_validate(files))


def test_valid_tls_settings_are_accepted(certificates):
    check_tls(Settings())
    check_tls(
        Settings(
            ssl_certfile=certificates.server,
            ssl_keyfile=certificates.sealed_key,
            ssl_keyfile_password=SecretStr(PASSWORD),
        )
    )
