"""The `millstream` command: its nouns and exit codes.

Imports that a command needs are inside the command, so that `millstream version` loads no database library.
"""

import os
import sys
from collections.abc import Sequence
from contextlib import suppress

import typer
from typer import Abort, TyperException

from api.cli.commands.archive import archive
from api.cli.commands.audit import audit
from api.cli.commands.backups import backups
from api.cli.commands.bench import bench
from api.cli.commands.config import config
from api.cli.commands.dead_letters import letters
from api.cli.commands.documents import documents
from api.cli.commands.group import group
from api.cli.commands.job import job
from api.cli.commands.key import key
from api.cli.commands.messages import messages
from api.cli.commands.namespace import namespace
from api.cli.commands.processes import processes
from api.cli.commands.queue import queue
from api.cli.commands.records import records
from api.cli.commands.replay import replay
from api.cli.commands.socket import process, socket
from api.cli.commands.stream import stream
from api.cli.commands.webhook import webhook
from api.cli.errors import CliError, ExitCode, PipeClosed, Terminated
from api.cli.shell.terminal import CONTEXT
from api.server import gc_tuning
from storage.domain.errors import MillstreamError, StorageUnavailable
from storage.settings import InvalidUrl

app = typer.Typer(
    help="Millstream: queues and streams over HTTP.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings=CONTEXT,
)
queue.add_typer(messages)
queue.add_typer(letters)
stream.add_typer(records)
app.add_typer(processes)
NOUNS = {
    "queue": queue,
    "stream": stream,
    "group": group,
    "replay": replay,
    "archive": archive,
    "webhook": webhook,
    "job": job,
    "socket": socket,
    "process": process,
    "namespace": namespace,
    "key": key,
    "audit": audit,
    "config": config,
}
for word, verbs in NOUNS.items():
    app.add_typer(verbs, name=word)
for verbs in (bench, backups, documents):
    app.add_typer(verbs)


def main() -> None:
    """Run the command line and exit with its code."""
    gc_tuning.relax_thresholds()
    try:
        sys.exit(run(sys.argv[1:]))
    finally:
        gc_tuning.skip_final_collection()


def run(words: Sequence[str]) -> int:
    """Run the command line and return the exit code.

    Expected errors are printed as one line on standard error.
    """
    try:
        return _code(app(words, standalone_mode=False))
    except TyperException as error:
        return _refused(error)
    except CliError as trouble:
        return _print_error(str(trouble), trouble.code)
    except StorageUnavailable as error:
        return _print_error(error.detail, ExitCode.UNAVAILABLE)
    except MillstreamError as error:
        return _print_error(error.detail, ExitCode.ERROR)
    except InvalidUrl as error:
        return _print_error(f"setting {error}", ExitCode.USAGE)
    except PipeClosed:
        return _without_reader()
    except (KeyboardInterrupt, Abort):
        return ExitCode.INTERRUPTED
    except Terminated:
        return ExitCode.TERMINATED


def _code(result: object) -> int:
    """Return the exit code of a command; commands that return nothing succeed."""
    return result if isinstance(result, int) else ExitCode.OK


def _print_error(line: str, code: ExitCode) -> int:
    typer.echo(f"millstream: {line}", err=True)
    return code


def _refused(error: TyperException) -> int:
    """Handle an unknown command, or a noun without a verb, which prints its verbs."""
    text = error.format_message()
    typer.echo(text if text.startswith("Usage:") else f"millstream: {text}", err=True)
    return error.exit_code


def _without_reader() -> int:
    """Handle a closed output pipe, as behind `head`: print nothing more."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return ExitCode.PIPE_CLOSED
