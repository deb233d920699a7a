"""`millstream up`, the processes that it starts, and `doctor`."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from api.cli.config.process_settings import settings_from_cli, with_stores
from api.cli.config.profiles import DEFAULT_ORIGIN
from api.cli.errors import CliError, ExitCode
from api.cli.grammar.common_options import OutputFormat
from api.cli.shell.options import DataOption, ServerOption, option
from api.cli.shell.output import Output
from api.cli.shell.terminal import Terminal, noun, verb

processes = noun()

Host = Annotated[str | None, option("--host", "Address to listen on.", "ADDRESS")]
Port = Annotated[int | None, option("--port", "Port to listen on; 0 selects a free port.", "PORT")]
Workers = Annotated[
    int | None, option("--workers", "Number of API processes. Default: by the number of cores.")
]
Ephemeral = Annotated[bool | None, option("--ephemeral", "Delete all data on exit.")]
Durability = Annotated[
    Literal["always", "everysec"] | None,
    typer.Option(
        help="always: acknowledged data is on disk; everysec: it is on disk within a second or two."
    ),
]
MemoryMb = Annotated[
    int | None,
    typer.Option(
        "--memory-mb",
        min=0,
        help="Memory limit of that Valkey in MiB; 0: no limit. Default: half of the "
        "machine's or container's memory.",
    ),
]
Replicas = Annotated[
    int | None,
    option(
        "--replicas",
        "Replicas of that Valkey, on this machine, for trying replicated durability: 2 or 4. Remembered.",
        "COUNT",
    ),
]
Insecure = Annotated[
    bool | None, option("--insecure", "Listen on non-loopback addresses without requiring keys.")
]


@processes.command()
def up(
    host: Host = None,
    port: Port = None,
    data: DataOption = None,
    workers: Workers = None,
    ephemeral: Ephemeral = None,
    durability: Durability = None,
    server: ServerOption = None,
    memory_mb: MemoryMb = None,
    replicas: Replicas = None,
    insecure: Insecure = None,
) -> None:
    """Run all components on this machine.

    Starts Valkey, Postgres, the API, the sweeper, a webhook deliverer and a Spark worker. Each option is also a setting:
    --port is MILLSTREAM_PORT. If REDIS_URL and DATABASE_URL are set, those servers are used instead of starting new ones.
    """
    from api.cli.up.up import up as run

    settings = settings_from_cli(
        host=host,
        port=port,
        data=data,
        workers=workers,
        ephemeral=ephemeral,
        durability=durability,
        server=server,
        memory_mb=memory_mb,
        replicas=replicas,
        insecure=insecure,
    )
    _warn_of_unknown_settings()
    run(settings)


@processes.command()
def serve(
    host: Host = None, port: Port = None, workers: Workers = None, insecure: Insecure = None
) -> None:
    """Run only the API.

    Uses the stores at REDIS_URL and DATABASE_URL.
    """
    from api.cli.up.up import serve as run

    settings = settings_from_cli(host=host, port=port, workers=workers, insecure=insecure)
    _warn_of_unknown_settings()
    run(with_stores(settings))


def _warn_of_unknown_settings() -> None:
    """Warn of unknown settings, since a misspelled setting has no effect."""
    from api.cli.config.sources import unknown

    for fault in unknown(Path.cwd()):
        typer.echo(f"millstream: {fault}", err=True)


@processes.command()
def sweep() -> None:
    """Run only the sweeper.

    Uses the stores at REDIS_URL and DATABASE_URL.
    """
    settings = with_stores(settings_from_cli())
    from api.cli.up.background import run, sweep

    run(settings, [sweep])


@processes.command()
def deliver() -> None:
    """Run a webhook deliverer. Any number of them share the webhooks.

    Uses the stores at REDIS_URL and DATABASE_URL.
    """
    settings = with_stores(settings_from_cli())
    from api.cli.up.background import deliver, run

    run(settings, [deliver])


@processes.command()
def background() -> None:
    """Run the sweeper and a deliverer together.

    One process saves memory. Uses the stores at REDIS_URL and DATABASE_URL.
    """
    settings = with_stores(settings_from_cli())
    from api.cli.up.background import deliver, run, sweep

    run(settings, [sweep, deliver])


@processes.command()
def worker() -> None:
    """Run only a Spark worker.

    It archives and replays. Uses the stores at REDIS_URL and DATABASE_URL.
    """
    settings = with_stores(settings_from_cli())
    from api.cli.up.worker import run

    run(settings)


@processes.command()
def migrate() -> None:
    """Migrate the database to this version.

    Uses the database at DATABASE_URL.
    """
    settings = with_stores(settings_from_cli()).storage()
    from storage.schema_version import migrate as run

    try:
        run(settings)
    except RuntimeError as error:  # the database is newer than this version
        raise CliError(str(error)) from None


@processes.command(hidden=True)
def initialize() -> None:
    """Migrate the database; print the administrator key of a new deployment, once."""
    migrate()
    from api.cli.ops.local_keys import create_first

    token = create_first()
    if token is not None:
        typer.echo(
            f"""\
Administrator key (not shown again; create others with `millstream key create --local`):

  export MILLSTREAM_API_KEY={token}
"""
        )


@verb(
    processes,
    "doctor",
    examples=["millstream doctor", "millstream doctor --url https://millstream.example.com"],
)
def doctor(
    cli: Terminal,
    host: Host = None,
    port: Port = None,
    data: DataOption = None,
    as_json: Annotated[bool, typer.Option("--json", hidden=True)] = False,
) -> None:
    """Check a service and this machine.

    With a URL, by option, environment or profile, the service is asked: its stores, processes, version, clock and certificate,
    and the permissions of the key. Without one, or if the service runs here, the machine, the data directory and the stores are
    checked. --host, --port and --data select the deployment of this machine. Exits with 1 if something is wrong.
    """
    from api.cli.ops.doctor import examine, examine_with_url, show

    settings = settings_from_cli(host=host, port=port, data=data)
    is_local = "url" not in cli.options and any((host, port is not None, data))
    has_url = not is_local and cli.target.url.origin != DEFAULT_ORIGIN
    findings = examine_with_url(cli, settings) if has_url else examine(settings)
    show(Output(OutputFormat.JSON) if as_json else cli.out, findings)
    if any(finding.ok is False for finding in findings):
        raise typer.Exit(ExitCode.ERROR)
