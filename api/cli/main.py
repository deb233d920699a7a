"""The `millstream` command: its exit codes.

Imports that a command needs are inside the command, so that `millstream --version` loads no database library.
"""

import os
import sys
from collections.abc import Sequence
from contextlib import suppress

import typer
from typer import Abort, TyperException

from api.cli.command_tree import command_tree
from api.cli.errors import CliError, ExitCode, PipeClosed, Terminated
from api.server import gc_tuning

app = command_tree()
# httpx imports this for a command of its own, which would load Rich and Pygments for every call.
sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]


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
    except PipeClosed:
        return _without_reader()
    except (KeyboardInterrupt, Abort):
        return ExitCode.INTERRUPTED
    except Terminated:
        return ExitCode.TERMINATED
    except Exception as error:
        if (code := _code_of(error)) is None:
            raise
        return code


def _code_of(error: Exception) -> ExitCode | int | None:
    """Print an error of a local command as one line and return its code; None for a defect.

    Its class is compared by what has been loaded, because most commands load no storage.
    """
    errors, settings = sys.modules.get("storage.domain.errors"), sys.modules.get("storage.settings")
    if errors and isinstance(error, errors.StorageUnavailable):
        return _print_error(error.detail, ExitCode.UNAVAILABLE)
    if errors and isinstance(error, errors.MillstreamError):
        return _print_error(error.detail, ExitCode.ERROR)
    if settings and isinstance(error, settings.InvalidUrl):
        return _print_error(f"setting {error}", ExitCode.USAGE)
    return None


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
