"""Test certificates, and a TLS proxy for servers that are built without TLS."""

import asyncio
import datetime
import ipaddress
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qs, urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.conditions import PATIENCE_S

SSL_REQUEST = b"\x00\x00\x00\x08\x04\xd2\x16\x2f"
_DAY = datetime.timedelta(days=1)


class Certificates(NamedTuple):
    """Certificate files; `sealed_key` is the server's key with a password."""

    ca: Path
    server: Path
    server_key: Path
    sealed_key: Path
    client: Path


PASSWORD = "correct horse"


def make_certificates(folder: Path) -> Certificates:
    """Create a CA, a server certificate for loopback and a client certificate, for a day."""
    ca_key = ec.generate_private_key(ec.SECP256R1())
    ca_name = _name("Test CA")
    ca = _sign(ca_name, ca_key, ca_name, ca_key, is_ca=True)
    server_key = ec.generate_private_key(ec.SECP256R1())
    server = _sign(_name("server"), server_key, ca_name, ca_key)
    client_key = ec.generate_private_key(ec.SECP256R1())
    client = _sign(_name("client"), client_key, ca_name, ca_key)
    files = Certificates(
        *(
            folder / name
            for name in ("ca.pem", "server.pem", "server.key", "sealed.key", "client.pem")
        )
    )
    files.ca.write_bytes(_pem(ca))
    files.server.write_bytes(_pem(server))
    files.server_key.write_bytes(_key(server_key))
    files.sealed_key.write_bytes(_key(server_key, PASSWORD))
    files.client.write_bytes(_key(client_key) + _pem(client))
    return files


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, common)])


def _sign(
    name: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    issuer: x509.Name,
    issuer_key: ec.EllipticCurvePrivateKey,
    *,
    is_ca: bool = False,
) -> x509.Certificate:
    now = datetime.datetime.now(datetime.UTC)
    hosts = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _DAY)
        .not_valid_after(now + _DAY)
        .add_extension(x509.BasicConstraints(is_ca, None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()),
            critical=False,
        )
        .add_extension(x509.SubjectAlternativeName(hosts), critical=False)
    )
    if is_ca:
        signs = dict.fromkeys(
            ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement"), False
        )
        usage = x509.KeyUsage(
            digital_signature=True,
            key_cert_sign=True,
            crl_sign=True,
            encipher_only=False,
            decipher_only=False,
            **signs,
        )
        builder = builder.add_extension(usage, critical=True)
    return builder.sign(issuer_key, hashes.SHA256())


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key(key: ec.EllipticCurvePrivateKey, password: str | None = None) -> bytes:
    sealed: serialization.KeySerializationEncryption = serialization.NoEncryption()
    if password:
        sealed = serialization.BestAvailableEncryption(password.encode())
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, sealed)


@contextmanager
def tls_in_front(url: str, certificates: Certificates) -> Iterator[int]:
    """Run a TLS proxy to the server at `url`, and yield its port."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificates.server, certificates.server_key)
    proxy = _Proxy(url, context)
    thread = threading.Thread(target=proxy.run, daemon=True)
    thread.start()
    proxy.ready.wait(PATIENCE_S)
    try:
        yield proxy.port
    finally:
        proxy.stop()
        thread.join(10)


class _Proxy:
    """A TLS proxy; clients of Postgres first send an SSLRequest."""

    def __init__(self, url: str, context: ssl.SSLContext) -> None:
        self._url = urlsplit(url)
        self._context = context
        self.ready = threading.Event()
        self.port = 0

    def run(self) -> None:
        asyncio.run(self._serve())

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._ended.set)

    async def _serve(self) -> None:
        self._loop, self._ended = asyncio.get_running_loop(), asyncio.Event()
        asks_first = self._url.scheme.startswith("postgres")
        server = await asyncio.start_server(
            self._begin if asks_first else self._pass_on,
            "127.0.0.1",
            0,
            ssl=None if asks_first else self._context,
        )
        self.port = server.sockets[0].getsockname()[1]
        self.ready.set()
        await self._ended.wait()
        server.close()

    async def _begin(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = await reader.readexactly(len(SSL_REQUEST))
        assert asked == SSL_REQUEST, "it did not ask for TLS"
        writer.write(b"S")
        await writer.start_tls(self._context)
        await self._pass_on(reader, writer)

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            there = await self._connect()
            await asyncio.gather(_copy(reader, there[1]), _copy(there[0], writer))

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        folder = parse_qs(self._url.query).get("host") or parse_qs(self._url.query).get("unix")
        if self._url.scheme == "unix":
            return await asyncio.open_unix_connection(self._url.path)
        if folder:
            return await asyncio.open_unix_connection(f"{folder[0]}/.s.PGSQL.5432")
        return await asyncio.open_connection(self._url.hostname, self._url.port)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while read := await reader.read(65_536):
            writer.write(read)
            await writer.drain()
    writer.close()
