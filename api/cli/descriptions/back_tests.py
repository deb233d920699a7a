"""Back-tests in the terminal: a result, and the job that evaluates all messages."""

from typing import TYPE_CHECKING

from api.cli.descriptions.sections import Section, describe
from api.cli.errors import CliError, ExitCode
from api.cli.shell.operations import JsonBody
from api.cli.shell.output import Row, to_row
from api.cli.shell.progress import JobNotices, progress
from api.cli.shell.terminal import LONG_S, Terminal

if TYPE_CHECKING:
    from millstream_client import BackTestJob

COUNTS = ("evaluated", "matched", "gained", "lost")


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


def start_job(cli: Terminal, topic: str, request: Row, *, wait: bool) -> None:
    """Start a job, and print its result at its end, or its id.

    Raises CliError if it fails or is cancelled.
    """
    status = cli.call("topics.start_backtest_job", topic, body=JsonBody(request))
    job_id = status["id"]
    if not wait:
        JobNotices(cli.print_notice).report(status["failure"], status["waiting_for"])
        cli.out.done(
            f"Started job {job_id}: millstream topic backtest {topic} --id {job_id}", status
        )
        return
    status = _until_over(cli, cli.connect(LONG_S).topic(topic).backtest_job(job_id))
    describe_job(cli, status)
    if status["state"] == "failed":
        raise CliError(f"job {job_id} failed: {status['failure']}")
    if status["state"] == "cancelled":
        raise CliError(f"job {job_id} was cancelled", ExitCode.PARTIAL)


def _until_over(cli: Terminal, job: "BackTestJob") -> Row:
    from millstream_client.sync.backtests import OVER

    notices = JobNotices(cli.print_notice)
    with progress(cli, "evaluated:") as shown:
        for status in job.watch():
            shown.to(status.result.evaluated, status.messages or None)
            if status.state not in OVER:
                notices.report(status.failure, status.waiting_for)
    return to_row(status)
