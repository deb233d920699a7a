"""`millstream up` and the processes it is made of, each of which also runs alone; and `doctor`, when they do not."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from api.cli.config.process_settings import settings_said, with_stores
from api.cli.errors import CliError, ExitCode
from api.cli.shell.terminal import noun

processes = noun("The service.")

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
MemoryMb = Annotated[
    int | None,
    typer.Option(
        "--memory-mb",
        min=0,
        help="Memory of that Valkey in MiB; 0: no limit. Default: half of the machine's or container's.",
    ),
]
Insecure = Annotated[
    bool | None,
    typer.Option("--insecure", help="Listen beyond loopback without asking callers for a key."),
]


@processes.command()
def up(
    host: Host = None,
    port: Port = None,
    data: Data = None,
    workers: Workers = None,
    ephemeral: Ephemeral = None,
    durability: Durability = None,
    server: Server = None,
    memory_mb: MemoryMb = None,
    insecure: Insecure = None,
) -> None:
    """Run everything on this machine: Valkey, Postgres, the API, the sweeper, a deliverer of webhooks
    and a Spark worker.

    Every option is also a setting: MILLSTREAM_PORT is --port. Servers that REDIS_URL and
    DATABASE_URL name are used, and not started.
    """
    from api.cli.up.up import up as run

    settings = settings_said(
        host=host,
        port=port,
        data=data,
        workers=workers,
        ephemeral=ephemeral,
        durability=durability,
        server=server,
        memory_mb=memory_mb,
        insecure=insecure,
    )
    _remark_on_unknown_settings()
    run(settings)


@processes.command()
def serve(
    host: Host = None, port: Port = None, workers: Workers = None, insecure: Insecure = None
) -> None:
    """Run the API alone, against REDIS_URL and DATABASE_URL."""
    from api.cli.up.up import serve as run

    settings = settings_said(host=host, port=port, workers=workers, insecure=insecure)
    _remark_on_unknown_settings()
    run(with_stores(settings))


def _remark_on_unknown_settings() -> None:
    """A misspelt setting would have no effect, and nobody would know."""
    from api.cli.config.sources import unknown

    for fault in unknown(Path.cwd()):
        typer.echo(f"millstream: {fault}", err=True)


@processes.command()
def sweep() -> None:
    """Run the sweeper alone, against REDIS_URL and DATABASE_URL."""
    settings = with_stores(settings_said())
    from api.cli.up.sweeper import run

    run(settings)


@processes.command()
def deliver() -> None:
    """Deliver webhooks, against REDIS_URL and DATABASE_URL; any number of these share them."""
    settings = with_stores(settings_said())
    from api.cli.up.deliverer import run

    run(settings)


@processes.command()
def worker() -> None:
    """Run a Spark worker alone, against REDIS_URL and DATABASE_URL: the archive, and replays."""
    settings = with_stores(settings_said())
    from api.cli.up.worker import run

    run(settings)


@processes.command()
def migrate() -> None:
    """Bring the database at DATABASE_URL to this version's schema."""
    settings = with_stores(settings_said()).storage()
    from storage.schema_version import migrate as run

    try:
        run(settings)
    except RuntimeError as error:  # the database is newer than this version
        raise CliError(str(error)) from None


@processes.command("first-key", hidden=True)
def first_key() -> None:
    """Say the key of a new deployment's administrator, once; say nothing in an old one."""
    from api.cli.ops.local_keys import create_first

    word = create_first()
    if word is not None:
        typer.echo(
            "The administrator's key, which is not shown again"
            f" (`millstream key create --local` makes others):\n\n  export MILLSTREAM_API_KEY={word}\n"
        )


@processes.command()
def doctor(
    host: Host = None,
    port: Port = None,
    data: Data = None,
    as_json: Annotated[bool, typer.Option("--json", help="Answer as JSON.")] = False,
) -> None:
    """Look for what is wrong, or soon will be."""
    from api.cli.ops.doctor import examine, show

    findings = examine(settings_said(host=host, port=port, data=data))
    show(findings, as_json=as_json)
    if any(finding.ok is False for finding in findings):
        raise typer.Exit(ExitCode.ERROR)
