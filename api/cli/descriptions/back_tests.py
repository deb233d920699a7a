"""Back-tests in the terminal: results, and the jobs that evaluate all messages or records."""

import inspect
from typing import TYPE_CHECKING, Annotated, Any

import typer

from api.cli.descriptions.sections import Section, describe
from api.cli.errors import CliError, ExitCode
from api.cli.shell.operations import JsonBody
from api.cli.shell.output import Row, table, to_row
from api.cli.shell.progress import JobNotices, progress
from api.cli.shell.terminal import LONG_S, Terminal

if TYPE_CHECKING:
    from millstream_client import BackTestJob, ViewBackTest

COUNTS = ("evaluated", "matched", "gained", "lost")
ROW_COUNTS = ("revision", "exact", "records", "view_records", "added", "removed", "changed")
DIFFERENCES = table("before", "after")
MESSAGES = table("sink", "change", "key", "row")

Wait = Annotated[
    bool, typer.Option(help="Wait until the job completes; Ctrl-C stops waiting, not the job.")
]


def wait_parameter() -> inspect.Parameter:
    """Return the parameter `--wait` of a command whose signature is composed."""
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter("wait", kind, default=True, annotation=Wait)


def describe_result(cli: Terminal, result: Row) -> None:
    """Print the result of a call that waited."""
    problem = f"There are more messages: {result['evaluated']} were evaluated; --job evaluates all"
    _describe(cli, result, result, [] if result["complete"] else [problem])


def describe_job(cli: Terminal, status: Row) -> None:
    """Print a job with its result so far."""
    result = status["result"]
    problems = [status["failure"]] if status["failure"] else []
    if not result["complete"]:
        evaluated = f"{result['evaluated']} of {status['messages']} messages were evaluated"
        problems.append(f"The job is {status['state']}; {evaluated}")
    _describe(cli, status, result, problems)


def _describe(cli: Terminal, row: Row, result: Row, problems: list[str]) -> None:
    describe(
        cli,
        row,
        problems,
        Section("messages", {name: result[name] for name in COUNTS}),
        Section("failed conditions", result["failed_by_path"]),
        Section("samples", result["samples"]),
    )


def describe_view_job(cli: Terminal, status: Row) -> None:
    """Print a back-test of a view with its result, once it has one."""
    result = status["result"]
    problems = [status["failure"]] if status["failure"] else []
    if result is None:
        evaluated = f"{status['records']} of {status['records_total'] or '?'} records were read"
        describe(cli, status, [*problems, f"The job is {status['state']}; {evaluated}"])
        return
    messages = [
        {"sink": sink["sink"], **message} for sink in result["sinks"] for message in sink["samples"]
    ]
    describe(
        cli,
        status,
        problems,
        Section("rows", {name: result[name] for name in ROW_COUNTS}),
        Section("rows that differ", result["samples"], DIFFERENCES),
        Section("messages", {sink["sink"]: sink["messages"] for sink in result["sinks"]}),
        Section("first messages", messages, MESSAGES),
    )


def start_job(cli: Terminal, topic: str, request: Row, *, wait: bool) -> None:
    """Start a job, and print its result at its end, or its id.

    Raises CliError if it fails or is cancelled.
    """
    status = cli.call("topics.start_backtest_job", topic, body=JsonBody(request))
    command = f"millstream topic backtest {topic} --id {status['id']}"
    if _is_left(cli, status, command, wait=wait):
        return
    job = cli.connect(LONG_S).topic(topic).backtest_job(status["id"])
    status = _until_over(cli, job, "evaluated:")
    describe_job(cli, status)
    _check(status)


def start_view_job(cli: Terminal, view: str, request: Row, *, wait: bool) -> None:
    """Start a back-test of a view, and print its result at its end, or its id.

    Raises CliError if it fails or is cancelled.
    """
    status = cli.call("views.start_view_backtest", view, body=JsonBody(request))
    command = f"millstream view backtests {view} --id {status['id']}"
    if _is_left(cli, status, command, wait=wait):
        return
    job = cli.connect(LONG_S).view(view).backtest(status["id"])
    status = _until_over(cli, job, "records:")
    describe_view_job(cli, status)
    _check(status)


def _is_left(cli: Terminal, status: Row, command: str, *, wait: bool) -> bool:
    """Print how a job's result is shown later, if it is not waited for."""
    if not wait:
        JobNotices(cli.print_notice).report(status["failure"], status["waiting_for"])
        cli.out.done(f"Started job {status['id']}: {command}", status)
    return not wait


def _check(status: Row) -> None:
    if status["state"] == "failed":
        raise CliError(f"job {status['id']} failed: {status['failure']}")
    if status["state"] == "cancelled":
        raise CliError(f"job {status['id']} was cancelled", ExitCode.PARTIAL)


def _until_over(cli: Terminal, job: "BackTestJob | ViewBackTest", label: str) -> Row:
    from millstream_client.sync.backtests import OVER

    notices = JobNotices(cli.print_notice)
    with progress(cli, label) as shown:
        for status in job.watch():
            shown.to(*_progress(to_row(status)))
            if status.state not in OVER:
                notices.report(status.failure, status.waiting_for)
    return to_row(status)


def _progress(status: Row) -> tuple[Any, Any]:
    """Return how much of a back-test is done, and of how much."""
    if "records" in status:
        return status["records"], status["records_total"]
    return status["result"]["evaluated"], status["messages"] or None
