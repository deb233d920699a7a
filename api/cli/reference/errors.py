"""Reference page of every error, with its codes in each API."""

from api.aws.kinesis.errors import translate as to_kinesis
from api.aws.protocol.errors import BAD_REQUEST
from api.aws.sqs.errors import UNSUPPORTED_OPERATION
from api.aws.sqs.errors import translate as to_sqs
from api.cli.errors import ExitCode
from api.cli.reference.markdown import code, page, table, yes
from api.native.problems import TABLE, AnyCode, error_of, is_retryable, nothing_happened
from storage.domain.errors import ErrorCode

INTRO = """\
Every error of the REST API is a problem document (RFC 9457) with a stable `code` for programs and a `detail` for people. `error` frames of the WebSocket API contain the same document.

*Retryable*: the same call may succeed later, unchanged. *Nothing happened*: the call has certainly changed nothing. If this is no, the call may have taken effect: retry with the same idempotency key, producer sequence or deduplication id
([delivery](../explanation/delivery.md#unknown-outcomes)).

The last two columns are what SQS clients (the code of the Query protocol) and Kinesis clients (the exception) receive for the same error. Malformed requests receive AWS's own codes there.
"""
COMMANDS = """\
## The command line

Errors are printed as one line on standard error. The exit codes are:
"""
EXITS = {
    ExitCode.OK: "done",
    ExitCode.ERROR: "error",
    ExitCode.USAGE: "usage or validation error",
    ExitCode.NOT_FOUND: "not found",
    ExitCode.UNAVAILABLE: "service or store unreachable, or outcome unknown",
    ExitCode.PARTIAL: "partly done",
    ExitCode.INTERRUPTED: "Ctrl-C",
    ExitCode.PIPE_CLOSED: "broken pipe: the reader of the output closed it",
    ExitCode.TERMINATED: "SIGTERM",
}
HEAD = ("code", "status", "retryable", "nothing happened", "description", "SQS", "Kinesis")


def errors_page() -> str:
    """Return the page of every error code, and every exit code."""
    exits = table(("code", ""), [(str(int(code)), EXITS[code]) for code in ExitCode])
    rows = [_row(error_code) for error_code in TABLE]
    return page("Errors", INTRO, table(HEAD, rows), COMMANDS + "\n" + exits)


def _row(error_code: AnyCode) -> tuple[str, ...]:
    return (
        code(error_code.value),
        str(TABLE[error_code].status),
        yes(is_retryable(error_code)),
        yes(nothing_happened(error_code)),
        error_of(error_code).detail
        if isinstance(error_code, ErrorCode)
        else f"{TABLE[error_code].title}.",
        *map(code, _at_the_other_doors(error_code)),
    )


def _at_the_other_doors(error_code: AnyCode) -> tuple[str, str]:
    """Return the codes of SQS and of Kinesis.

    Empty for an error that none of their operations has.
    """
    if not isinstance(error_code, ErrorCode):
        return "", ""
    sqs, kinesis = to_sqs(error_of(error_code)).fault, to_kinesis(error_of(error_code)).fault
    shape = kinesis.shape.rpartition("#")[2]
    return (
        "" if sqs is UNSUPPORTED_OPERATION else sqs.code,
        "" if kinesis is BAD_REQUEST else shape,
    )
