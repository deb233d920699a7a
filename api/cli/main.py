"""The `millstream` command: read the settings, call one function, say how it went.

What a command needs is imported in the command, so that `millstream version` loads no database.
"""

import json
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Annotated, Literal

import typer
from typer import Abort, TyperException

from api.cli.commands.archive import archive
from api.cli.commands.bench import bench
from api.cli.commands.config import config
from api.cli.commands.group import group
from api.cli.commands.job import job
from api.cli.commands.messages import messages
from api.cli.commands.queue import queue
from api.cli.commands.records import records
from api.cli.commands.replay import replay
from api.cli.commands.stream import stream
from api.cli.commands.webhook import webhook
from api.cli.settings import settings_said
from api.cli.terminal import CONTEXT
from api.cli.trouble import ExitCode, PipeClosed, Terminated, Trouble
from api.settings import Settings
from storage.domain.errors import MillstreamError, StorageUnavailable

app = typer.Typer(
    help="Millstream: queues and streams over plain HTTP.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings=CONTEXT,
)
queue.add_typer(messages)
stream.add_typer(records)
NOUNS = {
    "queue": queue,
    "stream": stream,
    "group": group,
    "replay": replay,
    "archive": archive,
    "webhook": webhook,
    "job": job,
    "config": config,
}
for word, verbs in NOUNS.items():
    app.add_typer(verbs, name=word)
app.add_typer(bench)

Host = Annotated[str | None, typer.Option(help="Address to listen on.")]
Port = Annotated[int | None, typer.Option(help="Port to listen on; 0 takes a free one.")]
Data = Annotated[Path | None, typer.Option(help="Directory where everything is kept.")]
Workers = Annotated[int | None, typer.Option(help="Number of API processes.")]
Ephemeral = Annotated[bool | None, typer.Option("--ephemeral", help="Keep nothing at the end.")]
Durability = Annotated[
    Literal["always", "everysec"] | None,
    typer.Option(help="always: acknowledged is on disk; everysec: within a second or two."),
]
Server = Annotated[
    Literal["bundled", "path"] | None,
    typer.Option(help="The Valkey to start: the bundled one, or one on PATH."),
]
Insecure = Annotated[
    bool | None,
    typer.Option("--insecure", help="Listen beyond loopback without asking who calls."),
]


@app.command()
def up(
    host: Host = None,
    port: Port = None,
    data: Data = None,
    workers: Workers = None,
    ephemeral: Ephemeral = None,
    durability: Durability = None,
    server: Server = None,
    insecure: Insecure = None,
) -> None:
    """Run everything on this machine: Valkey, Postgres, the API, the sweeper, a deliverer of webhooks
    and a Spark worker.

    Every option is also a setting: MILLSTREAM_PORT is --port. Servers that REDIS_URL and
    DATABASE_URL name are used, and not started.
    """
    from api.cli.up import up as run

    run(
        settings_said(
            host=host,
            port=port,
            data=data,
            workers=workers,
            ephemeral=ephemeral,
            durability=durability,
            server=server,
            insecure=insecure,
        )
    )


@app.command()
def serve(
    host: Host = None, port: Port = None, workers: Workers = None, insecure: Insecure = None
) -> None:
    """Run the API alone, against REDIS_URL and DATABASE_URL."""
    from api.cli.up import serve as run

    run(_with_stores(settings_said(host=host, port=port, workers=workers, insecure=insecure)))


@app.command()
def sweep() -> None:
    """Run the sweeper alone, against REDIS_URL and DATABASE_URL."""
    settings = _with_stores(settings_said())
    from api.cli.sweeping import run

    run(settings)


@app.command()
def deliver() -> None:
    """Deliver webhooks, against REDIS_URL and DATABASE_URL; any number of these share them."""
    settings = _with_stores(settings_said())
    from api.cli.delivering import run

    run(settings)


@app.command()
def worker() -> None:
    """Run a Spark worker alone, against REDIS_URL and DATABASE_URL: the archive, and replays."""
    settings = _with_stores(settings_said())
    from api.cli.working import run

    run(settings)


@app.command()
def migrate() -> None:
    """Bring the database at DATABASE_URL to this version's schema."""
    settings = _with_stores(settings_said()).storage()
    from storage.lifespan import migrate as run

    try:
        run(settings)
    except RuntimeError as error:  # the database is newer than this version
        raise Trouble(str(error)) from None


@app.command()
def doctor(
    host: Host = None,
    port: Port = None,
    data: Data = None,
    as_json: Annotated[bool, typer.Option("--json", help="Answer as JSON.")] = False,
) -> None:
    """Look for what is wrong, or soon will be."""
    from api.cli.doctor import examine, show

    findings = examine(settings_said(host=host, port=port, data=data))
    show(findings, as_json=as_json)
    if any(finding.ok is False for finding in findings):
        raise typer.Exit(ExitCode.ERROR)


@archive.command()
def verify(
    stream: Annotated[str | None, typer.Option(help="This stream's files alone.")] = None,
) -> None:
    """Read every file of the archive whole, and say what is damaged or missing."""
    settings = _with_stores(settings_said())
    from api.cli.archive import verify as run

    if not run(settings, stream):
        raise typer.Exit(ExitCode.ERROR)


@app.command()
def openapi() -> None:
    """Print the OpenAPI document of the REST API."""
    from api.app import create_app

    typer.echo(json.dumps(create_app().openapi(), indent=2, ensure_ascii=False))


@app.command()
def asyncapi() -> None:
    """Print the AsyncAPI document of the WebSocket endpoint."""
    from api.asyncapi import build_asyncapi

    typer.echo(json.dumps(build_asyncapi(), indent=2, ensure_ascii=False))


@app.command()
def version() -> None:
    """Print the version."""
    typer.echo(metadata.version("millstream"))


def main() -> None:
    """Run the command line, and end as it went."""
    sys.exit(run(sys.argv[1:]))


def run(words: Sequence[str]) -> int:
    """Run the command line; expected trouble is one line on standard error. Gives the exit code."""
    try:
        return _code(app(words, standalone_mode=False))
    except TyperException as error:
        return _refused(error)
    except Trouble as trouble:
        return _told(str(trouble), trouble.code)
    except StorageUnavailable as error:
        return _told(error.detail, ExitCode.UNAVAILABLE)
    except MillstreamError as error:
        return _told(error.detail, ExitCode.ERROR)
    except PipeClosed:
        return _without_reader()
    except (KeyboardInterrupt, Abort):
        return ExitCode.INTERRUPTED
    except Terminated:
        return ExitCode.TERMINATED


def _code(result: object) -> int:
    """Commands end with a code, or with nothing when all is well."""
    return result if isinstance(result, int) else ExitCode.OK


def _told(line: str, code: ExitCode) -> int:
    typer.echo(f"millstream: {line}", err=True)
    return code


def _refused(error: TyperException) -> int:
    """What was typed is no command of ours; or it was a noun alone, which is answered with its verbs."""
    said = error.format_message()
    typer.echo(said if said.startswith("Usage:") else f"millstream: {said}", err=True)
    return error.exit_code


def _without_reader() -> int:
    """Nobody reads what we write any more, as behind `head`: there is nothing to be said, at the end either."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return ExitCode.PIPE_CLOSED


def _with_stores(settings: Settings) -> Settings:
    try:
        settings.storage()
    except ValueError as error:
        raise Trouble(str(error), ExitCode.USAGE) from None
    return settings
