"""`millstream job`: Spark jobs."""

from enum import StrEnum
from itertools import islice
from typing import Annotated

import typer

from api.cli.shell.options import JobStateOption, Limit, option
from api.cli.shell.output import Column, table, to_row
from api.cli.shell.terminal import Terminal, noun, verb

job = noun()

JOBS = table(
    "id", "kind", "subject", "state", "attempt", "failure", Column("created_at", "created")
)
PARTS = table("part", "position", "done", "counts")

Name = Annotated[str, typer.Argument(help="Job id.")]


class JobKindOption(StrEnum):
    """Job type."""

    ARCHIVE = "archive"
    COMPACT = "compact"
    REPLAY = "replay"
    BACKTEST = "backtest"
    VIEW_BACKTEST = "view_backtest"
    QUERY = "query"


@verb(job, "ls", examples=["millstream job ls", "millstream job ls --state failed"])
def list_jobs(
    cli: Terminal,
    state: Annotated[JobStateOption | None, option("--state", "Only jobs in this state.")] = None,
    kind: Annotated[JobKindOption | None, option("--kind", "Only jobs of this type.")] = None,
    limit: Limit = 50,
) -> None:
    """List jobs, newest first."""
    cli.out.rows(map(to_row, islice(cli.client.jobs(kind, state), limit)), JOBS)


@verb(job, "show")
def show(cli: Terminal, name: Name) -> None:
    """Show a job and the progress of its parts."""
    cli.out.show(to_row(cli.client.job(name).status()), parts=PARTS)


@verb(job, "cancel")
def cancel(cli: Terminal, name: Name) -> None:
    """Cancel a job; completed work is kept."""
    cli.out.done(f"Cancelling job {name}.", to_row(cli.client.job(name).cancel()))


@verb(job, "retry")
def retry(cli: Terminal, name: Name) -> None:
    """Retry a failed job from where it stopped."""
    cli.out.done(f"Retrying job {name}.", to_row(cli.client.job(name).retry()))
