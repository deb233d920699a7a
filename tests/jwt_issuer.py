"""A local token issuer: its key set, and a counter of requests."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

RSA_KEY = rsa.generate_private_key(public_exponent=65_537, key_size=2_048)
EC_KEY = ec.generate_private_key(ec.SECP256R1())
ED_KEY = ed25519.Ed25519PrivateKey.generate()
KEYS: dict[str, tuple[Any, Any, str]] = {
    "rsa": (RSA_KEY, RSAAlgorithm, "RS256"),
    "ec": (EC_KEY, ECAlgorithm, "ES256"),
    "ed": (ED_KEY, OKPAlgorithm, "EdDSA"),
}


def jwk(kid: str, key: Any, algorithm: Any, **members: Any) -> dict[str, Any]:
    return {**json.loads(algorithm.to_jwk(key.public_key())), "kid": kid, **members}


def jwks(*names: str) -> bytes:
    keys = [jwk(name, *KEYS[name][:2]) for name in names or KEYS]
    return json.dumps({"keys": keys}).encode()


class KeyServer:
    """Serve an issuer's keys, and count requests."""

    def __init__(self) -> None:
        self.body = jwks()
        self.status = "200 OK"
        self.headers = ""
        self.requests = 0
        self.url = ""
        self.hold: asyncio.Event | None = None

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        self.requests += 1
        if self.hold is not None:
            await self.hold.wait()
        head = f"HTTP/1.1 {self.status}\r\n{self.headers}connection: close\r\n"
        writer.write(f"{head}content-length: {len(self.body)}\r\n\r\n".encode() + self.body)
        with suppress(ConnectionError):
            await writer.drain()
        writer.close()


@asynccontextmanager
async def running_key_server() -> AsyncIterator[KeyServer]:
    """Serve the keys while the block runs."""
    key_server = KeyServer()
    listener = await asyncio.start_server(key_server.answer, "127.0.0.1", 0)
    key_server.url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/keys"
    async with listener:
        yield key_server
