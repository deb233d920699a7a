"""Errors of the service, as one line and an exit code."""

from api.cli.errors import CliError, ExitCode
from api.nouns import NOUNS
from millstream_client.errors import (
    AlreadyExists,
    BadRequest,
    ConnectionFailed,
    ItemRefused,
    Limited,
    MillstreamError,
    NeverConnected,
    NotFound,
    NotMillstream,
    OutcomeUnknown,
    PartlyRefused,
    Refused,
    TimedOut,
    Unauthenticated,
    Unavailable,
)

HINTS = {
    **{
        f"{noun.name}_not_found": f"`millstream {noun.name} ls` lists existing {noun.plural}."
        for noun in NOUNS
        if noun.commands
    },
    "stream_recreated": "Start again from the position that you want.",
    "already_exists": "`apply` replaces the settings of an existing one; preview it with --dry-run.",
    "receipt_handle_expired": "The message returned to its queue; receive it again.",
    "archive_off": "The service has no archive; set MILLSTREAM_ARCHIVE_URL.",
}
"""Remedy for a problem, by its code."""


def cli_error_from(error: MillstreamError) -> CliError:
    """Convert an error of the SDK to its line and exit code."""
    return CliError(_line(error), _code(error))


def _line(error: MillstreamError) -> str:
    sentence = _sentence(error)
    hint = _hint(error)
    return f"{sentence} {hint}" if hint else sentence


def _sentence(error: MillstreamError) -> str:
    text = " ".join(_text(error).split())
    return text if text.endswith((".", "!", ")")) else f"{text}."


def _text(error: MillstreamError) -> str:
    match error:
        case AlreadyExists():
            return str(error)
        case Refused():
            return _problem(error)
        case _:
            return str(error)


def _problem(error: Refused) -> str:
    """Format the detail and location of a problem, without repetition."""
    faults = [fault for fault in error.errors if fault.pointer]
    if [fault.detail for fault in faults] == [error.detail]:
        return f"{faults[0].pointer}: {error.detail} ({error.code})"
    unsaid = [fault for fault in faults if fault.detail not in error.detail]
    places = "; ".join(f"{fault.pointer}: {fault.detail}" for fault in unsaid)
    return (
        f"{error.detail} [{places}] ({error.code})" if places else f"{error.detail} ({error.code})"
    )


def _hint(error: MillstreamError) -> str:
    match error:
        case NeverConnected():
            return "Or specify another with --url."
        case ConnectionFailed():
            return "Start one with `millstream up`, or specify another with --url."
        case NotMillstream():
            return "Specify the address of a Millstream service with --url."
        case Unauthenticated():
            return "Specify a key with --api-key or MILLSTREAM_API_KEY."
        case Limited() | Unavailable():
            return "Try again later, or use --retry."
        case TimedOut() | OutcomeUnknown():
            return "The call may have taken effect; check before you repeat it."
        case Refused() | ItemRefused():
            return HINTS.get(error.code, "")
        case _:
            return ""


def _code(error: MillstreamError) -> ExitCode:
    match error:
        case ConnectionFailed() | OutcomeUnknown() | Unavailable() | TimedOut() | Limited():
            return ExitCode.UNAVAILABLE
        case NotFound():
            return ExitCode.NOT_FOUND
        case BadRequest():
            return ExitCode.USAGE
        case PartlyRefused():
            return ExitCode.PARTIAL
        case _:
            return ExitCode.ERROR
