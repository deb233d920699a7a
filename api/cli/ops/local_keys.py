"""Credential creation without the service, for the machine's owner who has lost every key.

Access to the machine implies access to its database.
"""

import asyncio
from pathlib import Path
from typing import Any

from pydantic import SecretStr, ValidationError

from api.cli.config.process_settings import settings_from_cli
from api.cli.errors import CliError, ExitCode
from api.cli.shell.output import Row
from api.cli.up.data_directory import in_use, own_secret_keys
from api.config.settings import Settings
from api.rest.schemas.key import KeyConfig, KeyCreated
from storage.audit.log import AuditLog
from storage.bootstrap import open_audit, open_credentials
from storage.domain.access.audit import DONE, ApiProtocol, AuditedCall, outcome_of
from storage.domain.access.permissions import LOCAL_ADMINISTRATOR, Action
from storage.domain.errors import MillstreamError
from storage.embedded.postgres import PostgresServer
from storage.settings import StorageSettings

_UNUSED = "redis://unused"


def create(config: dict[str, Any], data: Path | None) -> Row:
    """Create a credential as an administrator everywhere. Raises CliError, MillstreamError."""
    settings = _storage(settings_from_cli(data=data))
    try:
        request = KeyConfig.model_validate_json(_json(config))
    except ValidationError as error:
        fault = error.errors()[0]
        where = "/".join(str(part) for part in fault["loc"])
        raise CliError(f"{where}: {fault['msg']}", ExitCode.USAGE) from None

    async def make() -> Row:
        async with open_credentials(settings) as credentials, open_audit(settings) as audit:
            intent = await audit.begin(_audited_call(audit, "create_key"), None)
            try:
                issued, secret = await credentials.create(LOCAL_ADMINISTRATOR, request.to_domain())
            except MillstreamError as error:
                await audit.commit(intent, outcome_of(error), None)
                raise
            await audit.commit(intent, DONE, None, {"id": issued.id, "name": issued.name})
            return KeyCreated.from_domain(issued, secret=secret.token).model_dump(mode="json")

    return asyncio.run(make())


def create_first() -> str | None:
    """Create the administrator's API key of a new deployment; None in an old one.

    Raises CliError, MillstreamError.
    """
    settings = _storage(settings_from_cli())

    async def make() -> str | None:
        async with open_credentials(settings) as credentials, open_audit(settings) as audit:
            intent = await audit.begin(_audited_call(audit, "create_first_key"), None)
            secret = await credentials.create_first()
            if secret is None:
                await audit.abort(intent)
                return None
            await audit.commit(intent, DONE, None, {"id": secret.id})
            return secret.token

    return asyncio.run(make())


def _audited_call(audit: AuditLog, operation: str) -> AuditedCall:
    """Return the audited call of a local command, which needs no credential but is audited."""
    return AuditedCall.of(
        at_ms=audit.now_ms(),
        protocol=ApiProtocol.CLI,
        namespace=LOCAL_ADMINISTRATOR.namespace,
        principal=LOCAL_ADMINISTRATOR.name,
        credential="",
        authenticated="machine",
        address="",
        operation=operation,
        action=Action.ADMIN_KEYS.value,
        resource="keys",
        request_id="",
    )


def _json(config: dict[str, Any]) -> bytes:
    import msgspec

    return msgspec.json.encode(config)


def _storage(settings: Settings) -> StorageSettings:
    """Return the settings' database, or that of the `millstream up` on their data directory."""
    update: dict[str, Any] = {"redis_url": settings.redis_url or SecretStr(_UNUSED)}
    if settings.database_url is None:
        if not in_use(settings.data):
            raise CliError(
                f"no Millstream is running on {settings.data}: start it, specify --data, or set DATABASE_URL",
                ExitCode.UNAVAILABLE,
            )
        update["database_url"] = SecretStr(PostgresServer(settings.data).url)
        if settings.secret_keys is None and settings.secret_keys_file is None:
            update["secret_keys_file"] = own_secret_keys(settings.data)
    return settings.model_copy(update=update).storage()
