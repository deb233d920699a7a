"""`millstream job`: the long work that a worker does."""

from enum import StrEnum
from itertools import islice
from typing import Annotated

import typer

from api.cli.shell.options import Most
from api.cli.shell.output import Column, table, to_row
from api.cli.shell.terminal import Terminal, noun, verb

job = noun("Jobs: the long work that a worker does.")

JOBS = table(
    "id", "kind", "subject", "state", "attempt", "failure", Column("created_at", "created")
)
PARTS = table("part", "position", "done", "counts")

Name = Annotated[str, typer.Argument(help="The job's id.")]


class StateWord(StrEnum):
    """Where a job is."""

    QUEUED = "queued"
    RUNNING = "running"
    PAUSED = "paused"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


class KindWord(StrEnum):
    """What is to be done."""

    ARCHIVE = "archive"
    COMPACT = "compact"
    REPLAY = "replay"


@verb(job, "ls", examples=["millstream job ls", "millstream job ls --state failed"])
def list_jobs(
    cli: Terminal,
    state: Annotated[
        StateWord | None, typer.Option("--state", help="Only jobs in this state.")
    ] = None,
    kind: Annotated[KindWord | None, typer.Option("--kind", help="Only jobs of this kind.")] = None,
    most: Most = 50,
) -> None:
    """List the jobs, the newest first."""
    cli.out.rows(map(to_row, islice(cli.client.jobs(kind, state), most)), JOBS)


@verb(job, "show")
def show(cli: Terminal, name: Name) -> None:
    """Show a job, and how far each part of it is."""
    cli.out.show(to_row(cli.client.job(name).status()), parts=PARTS)


@verb(job, "cancel")
def cancel(cli: Terminal, name: Name) -> None:
    """End a job; what it has done stays."""
    cli.out.done(f"Job {name} is to end.", to_row(cli.client.job(name).cancel()))


@verb(job, "retry")
def retry(cli: Terminal, name: Name) -> None:
    """Begin a failed job again, where it left off."""
    cli.out.done(f"Job {name} begins again.", to_row(cli.client.job(name).retry()))
