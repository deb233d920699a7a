"""`millstream archive`: archived streams. `verify` reads the stores directly."""

import time
from collections.abc import Iterator
from itertools import islice
from typing import Annotated

import typer

from api.cli.config.process_settings import settings_from_cli
from api.cli.errors import CliError, ExitCode
from api.cli.shell.options import DataOption, Limit, Prefix, StreamName, option
from api.cli.shell.output import Row, table, to_row
from api.cli.shell.progress import JobNotices, progress
from api.cli.shell.terminal import LONG_S, Terminal, noun, verb

archive = noun()

STREAMS = table("stream", "files", "records", "file_bytes", "waiting_records", "waiting_seconds")
SHARDS = table(
    "shard",
    "archive_start_offset",
    "archived_offset",
    "hot_start_offset",
    "next_offset",
    "waiting_records",
    "files",
    "file_bytes",
)
FILES = table("id", "shard", "first_offset", "next_offset", "records", "file_bytes", "path")

POLL_S = 0.5
PAGE = 1_000
SUMMED = ("files", "records", "file_bytes", "waiting_records")


@verb(archive, "ls", examples=["millstream archive ls"])
def list_archives(cli: Terminal, prefix: Prefix = "") -> None:
    """List archived streams.

    Makes one call per stream.
    """
    archived = (one for one in cli.client.streams(prefix) if one.archive)
    cli.out.rows((_summed(cli, one.name) for one in archived), STREAMS)


def _summed(cli: Terminal, name: str) -> Row:
    shards = to_row(cli.client.stream(name).archive())["shards"]
    sums = {field: sum(shard[field] for shard in shards) for field in SUMMED}
    waiting = max((shard["waiting_seconds"] for shard in shards), default=0)
    return {"stream": name, **sums, "waiting_seconds": waiting}


@verb(
    archive,
    "show",
    examples=["millstream archive show clicks", "millstream archive show clicks --files"],
)
def show(
    cli: Terminal,
    name: StreamName,
    files: Annotated[bool, option("--files", "List the files instead.")] = False,
    limit: Limit = None,
) -> None:
    """Show the archive of a stream by shard.

    With --files, lists its files.
    """
    if files:
        cli.out.rows(islice(_files(cli, name), limit), FILES)
    else:
        cli.out.show(to_row(cli.client.stream(name).archive()), shards=SHARDS)


def _files(cli: Terminal, name: str) -> Iterator[Row]:
    """Yield the files shard by shard, in the order of offsets."""
    list_files = "archives.list_archived_files"
    for shard in cli.client.stream(name).shards():
        yield from cli.pages(list_files, name, shard=shard.index, limit=PAGE)


@verb(archive, "flush", examples=["millstream archive flush clicks --no-wait"])
def flush(
    cli: Terminal,
    name: StreamName,
    wait: Annotated[
        bool, typer.Option(help="Wait until it completes; Ctrl-C stops waiting, not the job.")
    ] = True,
) -> None:
    """Archive all records of a stream now."""
    job = cli.client.stream(name).flush_archive()
    if not wait:
        cli.out.done(f"Job {job} archives stream {name}.", {"job": job})
        return
    last = _until_over(cli, name, job)
    is_done = last["state"] == "done"
    cli.out.done(f"Stream {name} is {'' if is_done else 'not completely '}archived.", last)
    if not is_done:
        raise CliError(
            f"job {job} is {last['state']}: {last['failure'] or 'see millstream job show'}"
        )


def _until_over(cli: Terminal, name: str, job: str) -> Row:
    from millstream_client.sync.replays import OVER

    client = cli.connect(LONG_S)
    at_first = _waiting(to_row(client.stream(name).archive()))
    notices = JobNotices(cli.print_notice)
    with progress(cli, "archived:") as shown:
        while (status := to_row(client.job(job).status()))["state"] not in OVER:
            waiting = _waiting(to_row(client.stream(name).archive()))
            shown.to(max(0, at_first - waiting), at_first)
            notices.report(status["failure"], status["waiting_for"])
            time.sleep(POLL_S)
    return status


def _waiting(archive: Row) -> int:
    return sum(shard["waiting_records"] for shard in archive["shards"])


@archive.command()
def verify(
    stream: Annotated[str | None, option("--stream", "Only this stream's files.", "NAME")] = None,
    data: DataOption = None,
) -> None:
    """Verify every file of the archive.

    Reads each file completely, and reports corrupt or missing ones. Uses the stores at REDIS_URL and DATABASE_URL, or those of the `millstream up` that runs on the data directory.
    """
    from api.cli.ops.archive_verify import verify as run
    from api.cli.up.running_stores import with_running_stores

    settings = settings_from_cli(data=data)
    if (stores := with_running_stores(settings)) is None:
        raise CliError(
            f"no Millstream is running on {settings.data}: start it, specify --data, or set REDIS_URL and DATABASE_URL",
            ExitCode.UNAVAILABLE,
        )
    if not run(stores, stream):
        raise typer.Exit(ExitCode.ERROR)
