"""Options that describe a match, the same for routes and readers."""

import json
from typing import Annotated, Any

from api.cli.errors import CliError, ExitCode
from api.cli.shell.options import option

Subjects = Annotated[
    list[str] | None,
    option("--subject", "Pattern of subjects, such as 'order.*'; repeat for more.", "PATTERN"),
]
FilterText = Annotated[
    str | None,
    option("--filter", 'Filter in JSON, such as \'{"body":{"vip":[true]}}\'.', "JSON"),
]
Where = Annotated[
    str | None,
    option("--where", "SQL condition, such as 'headers.retries < 3'.", "CONDITION"),
]


def match_of(
    subjects: list[str] | None, filter_: str | None, where: str | None
) -> dict[str, Any] | None:
    """Return the match that options describe; None without any. Raises CliError."""
    match: dict[str, Any] = {}
    if subjects:
        match["subject"] = subjects
    if filter_ is not None:
        try:
            match["filter"] = json.loads(filter_)
        except ValueError as error:
            raise CliError(f"--filter is not JSON: {error}", ExitCode.USAGE) from None
    if where is not None:
        match["where"] = where
    return match or None
