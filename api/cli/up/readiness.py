"""Readiness of a service's API, as seen from outside."""

import asyncio
import http.client
import socket
import time
from collections.abc import Sequence
from urllib.parse import urlsplit

import typer

from api.cli.errors import CliError, ExitCode
from api.cli.up.supervisor import ProcessMonitor
from api.cli.up.tls import own_context

READY_S = 60.0
REPLICATED_READY_S = 3_600.0  # the replicas of a large store are filled first
QUIET_S = 3.0
READY_POLL_S = 0.05
READY_REPLY_S = 2.0


async def wait_until_ready(
    url: str,
    monitors: Sequence[ProcessMonitor],
    *,
    wants_client_certificate: bool,
    within_s: float = READY_S,
) -> None:
    """Wait until /readyz is 200. Raises CliError when one of the processes exits, or too late.

    Prints what is not ready once that lasts, and whenever it changes.
    """
    began, printed = time.monotonic(), ""
    check = tls_readiness if wants_client_certificate else readiness
    while (answer := await asyncio.to_thread(check, url)) != "":
        if ended := [monitor.program.name for monitor in monitors if monitor.restarts]:
            raise CliError(f"{ended[0]} exited during startup (see above)")
        waited_s = time.monotonic() - began
        if waited_s > within_s:
            raise CliError(f"not ready after {within_s:.0f} s: {answer}", ExitCode.UNAVAILABLE)
        if waited_s > QUIET_S and answer != printed:
            typer.echo(f"not ready yet: {answer}", err=True)
            printed = answer
        await asyncio.sleep(READY_POLL_S)


def tls_readiness(url: str) -> str:
    """Return the reason why the service does not speak TLS; empty if it does.

    More requires a client certificate, which we do not have.
    """
    address = urlsplit(url)
    try:
        with (
            socket.create_connection((address.hostname, address.port), READY_REPLY_S) as plain,
            own_context().wrap_socket(plain),
        ):
            return ""
    except OSError as error:
        return f"no response ({error})"


def readiness(url: str) -> str:
    """Return the reason why the service is not ready; empty if it is."""
    address = urlsplit(url)
    connection = _connection(address.scheme, address.hostname or "", address.port)
    try:
        connection.request("GET", "/readyz")
        answer = connection.getresponse()
        body = answer.read().decode(errors="replace")
    except (OSError, http.client.HTTPException) as error:
        return f"no response ({error})"
    finally:
        connection.close()
    return "" if answer.status == http.HTTPStatus.OK else body


def _connection(scheme: str, host: str, port: int | None) -> http.client.HTTPConnection:
    if scheme == "https":
        return http.client.HTTPSConnection(host, port, timeout=READY_REPLY_S, context=own_context())
    return http.client.HTTPConnection(host, port, timeout=READY_REPLY_S)
