"""The resolved address of a receiver is checked at connection time."""

import datetime
import ssl

import httpcore
import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from consumers.webhooks.ssrf_guard import AddressRefused, Connections
from storage.domain.access.egress import Egress
from storage.domain.queues.message import NewMessage
from storage.domain.webhooks import AttemptOutcome
from tests.integration.webhooks.conftest import ALLOW, ORDERS
from tests.webhook_receiver import Receiver, running_receiver

pytestmark = pytest.mark.one_store

NAME = "hooks.example"


class Resolver:
    """A resolver with another answer each time, and the last one from then on."""

    def __init__(self, *answers: list[str]) -> None:
        self.answers = list(answers)
        self.asked = 0

    async def __call__(self, host: str, port: int) -> list[str]:
        assert host == NAME
        self.asked += 1
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


def at_a_name(receiver: Receiver) -> httpx.URL:
    return httpx.URL(f"http://{NAME}:{receiver.port}/")


async def send(storage, body: bytes = b"hello") -> str:
    [sent] = await storage.queues.send(ORDERS, [NewMessage(body)])
    return str(sent.message_id)


@pytest.mark.parametrize(
    "addresses",
    [["10.0.0.1"], ["169.254.169.254"], ["::1"], ["127.0.0.1", "10.0.0.1"], ["8.8.8.8", "::1"]],
)
async def test_name_resolving_to_private_address_is_blocked(bench, storage, receiver, addresses):
    await bench.queue_hook(url="https://hooks.example/")
    source = await bench.queue_source(resolver=Resolver(addresses))
    await send(storage)

    await source.round()

    [delivery] = await bench.deliveries()
    assert delivery.last_attempts[0].outcome is AttemptOutcome.BLOCKED
    assert (delivery.last_attempts[0].status, delivery.last_attempts[0].response) == (None, "")
    assert receiver.requests == []


async def test_address_is_checked_for_each_connection(receiver):
    """DNS rebinding: an allowed address, then a forbidden one; only the first is connected to."""
    url, resolver = at_a_name(receiver), Resolver(["127.0.0.1"], ["127.0.0.2"])
    connections = Connections(url, Egress.of(ALLOW), resolver)
    request = httpcore.Request("POST", str(url), headers={"host": NAME, "connection": "close"})

    async with connections.one() as connection:
        response = await connection.handle_async_request(request)
        await response.aread()
        await response.aclose()
    with pytest.raises(AddressRefused):
        async with connections.one() as connection:
            await connection.handle_async_request(request)

    assert resolver.asked == 2
    assert [got.headers["host"] for got in receiver.requests] == [NAME]


async def test_untrusted_certificate_is_failure(bench, storage, tmp_path):
    async with running_receiver(tls=_own_certificate(tmp_path)) as receiver:
        await bench.queue_hook(url=f"https://127.0.0.1:{receiver.port}/")
        await send(storage)

        await (await bench.queue_source()).round()

    [delivery] = await bench.deliveries()
    assert delivery.last_attempts[0].outcome is AttemptOutcome.TLS
    assert receiver.requests == []


def _own_certificate(folder) -> ssl.SSLContext:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, NAME)])
    day = datetime.timedelta(days=1)
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - day)
        .not_valid_after(now + day)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    path = folder / "own.pem"
    path.write_bytes(
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + certificate.public_bytes(pem)
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    return context
