"""A service in this process that requires credentials, and credentials for it."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import httpx

from api.config.settings import Settings
from storage.access.secret_box import new_key
from storage.bootstrap import Storage, open_storage
from storage.domain.access.credentials import CredentialKind, CredentialRequest, NewSecret, Rights
from storage.domain.access.permissions import LOCAL_ADMINISTRATOR, Principal, Role
from storage.domain.limits import Limits
from storage.domain.names import QueueName, StreamName
from storage.domain.queues.queue import QueueSpec
from storage.domain.streams.stream import StreamSpec
from storage.settings import StorageSettings
from tests.aws_clients import aws_client
from tests.websocket_client import Server, running_server

ADMIN_RIGHTS = Rights(roles=(Role.ADMIN,))


class SecuredService:
    """The service, and its credentials."""

    def __init__(self, server: Server, storage: Storage) -> None:
        self.url = server.url
        self.storage = storage

    async def key(
        self,
        rights: Rights = ADMIN_RIGHTS,
        *,
        by: Principal = LOCAL_ADMINISTRATOR,
        kind: CredentialKind = CredentialKind.KEY,
        all_namespaces: bool = False,
    ) -> NewSecret:
        """Create a credential."""
        request = CredentialRequest(
            name="ada", rights=rights, kind=kind, all_namespaces=all_namespaces
        )
        _, secret = await self.storage.credentials.create(by, request)
        return secret

    async def request(
        self, method: str, path: str, key: NewSecret | None = None, **options: Any
    ) -> Any:
        """Send a REST request."""
        headers = {"authorization": f"Bearer {key.token}"} if key else {}
        headers |= options.pop("headers", {})
        async with httpx.AsyncClient(base_url=self.url) as client:
            return await client.request(method, path, headers=headers, **options)

    def client(self, service: str, key_id: str, secret: str) -> Any:
        """Return an unmodified AWS SDK client without retries."""
        return aws_client(service, self.url, pair=(key_id, secret))

    @property
    def socket_address(self) -> str:
        return self.url.replace("http", "ws") + "/v1/ws"


@asynccontextmanager
async def running_secured_service(
    redis_url: str, database_url: str
) -> AsyncGenerator[SecuredService]:
    """Serve a queue `orders` and a stream `clicks` of one shard, with credentials required."""
    settings = StorageSettings(
        redis_url=redis_url, database_url=database_url, secret_keys=(new_key(),)
    )
    async with open_storage(settings) as storage:
        await storage.catalog.put_queue(QueueName("orders"), QueueSpec())
        await storage.catalog.put_stream(StreamName("clicks"), StreamSpec(shards=1))
        async with running_server(storage, Limits(), Settings(auth="keys")) as server:
            yield SecuredService(server, storage)
