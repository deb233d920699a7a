"""Reference page of every error, with its codes in each API."""

from api.aws.kinesis import errors as kinesis
from api.aws.kinesis.errors import as_kinesis_error
from api.aws.protocol.errors import AwsError, AwsFault
from api.aws.sqs import errors as sqs
from api.cli.errors import ExitCode
from api.cli.reference.markdown import code, page, table, yes
from api.native.problems import (
    CODES,
    AnyCode,
    error_of,
    status_of,
    status_of_category,
    title_of,
)
from storage.domain.errors import ErrorCategory, ErrorCode

INTRO = """\
Every error of the REST API is a problem document (RFC 9457) with a stable `code` for programs and a `detail` for people. `error` frames of the WebSocket API contain the same document.

*Retryable*: the same call may succeed later, unchanged. *Nothing happened*: the call has certainly changed nothing. If this is no, the call may have taken effect: retry with the same idempotency key, producer sequence or deduplication id
([delivery](../explanation/delivery.md#unknown-outcomes)).

The *category* of an error determines its answer in each API. SQS columns have the code of the Query protocol, Kinesis columns the exception. Malformed requests receive AWS's own codes there.
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
CATEGORY_HEAD = ("category", "status", "retryable", "SQS", "Kinesis")
HEAD = ("code", "category", "status", "nothing happened", "description", "SQS", "Kinesis")
CODES_INTRO = """\
## Codes

The SQS and Kinesis columns have an entry where an error differs from its category.
"""


def errors_page() -> str:
    """Return the page of every category, error code and exit code."""
    exits = table(("code", ""), [(str(int(code)), EXITS[code]) for code in ExitCode])
    categories = table(CATEGORY_HEAD, [_category_row(category) for category in ErrorCategory])
    codes = table(HEAD, [_row(error_code) for error_code in CODES])
    return page("Errors", INTRO, categories, CODES_INTRO + "\n" + codes, COMMANDS + "\n" + exits)


def _category_row(category: ErrorCategory) -> tuple[str, ...]:
    return (
        code(category.value),
        str(status_of_category(category)),
        yes(category.retryable),
        code(_sqs_code(sqs.TRANSLATION.fault_of_category(category))),
        code(_kinesis_code(kinesis.TRANSLATION.fault_of_category(category))),
    )


def _row(error_code: AnyCode) -> tuple[str, ...]:
    return (
        code(error_code.value),
        code(error_code.category.value),
        str(status_of(error_code)),
        yes(error_code.nothing_happened),
        error_of(error_code).detail
        if isinstance(error_code, ErrorCode)
        else f"{title_of(error_code)}.",
        *map(code, _aws_codes(error_code)),
    )


def _aws_codes(error_code: AnyCode) -> tuple[str, str]:
    """Return the codes of SQS and of Kinesis where they differ from those of the category."""
    if not isinstance(error_code, ErrorCode):
        return "", ""
    in_sqs = sqs.TRANSLATION.codes.get(error_code)
    in_kinesis = kinesis.TRANSLATION.codes.get(error_code)
    return (in_sqs and _sqs_code(in_sqs)) or "", (in_kinesis and _kinesis_code(in_kinesis)) or ""


def _sqs_code(fault: AwsFault) -> str:
    return fault.code


def _kinesis_code(fault: AwsFault) -> str:
    return as_kinesis_error(AwsError(fault, "")).fault.shape
