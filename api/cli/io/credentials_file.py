"""Option with the credentials of a URL, the same for webhooks and routes."""

import json
from pathlib import Path
from typing import Annotated, Any

from api.cli.errors import CliError, ExitCode
from api.cli.io.stdin import read_text_file
from api.cli.shell.options import option

CredentialsFile = Annotated[
    Path | None,
    option(
        "--credentials-file",
        "JSON file with the credentials of the URL, such as an OAuth client; - reads standard input.",
        "FILE",
    ),
]


def read_credentials(path: Path | None) -> Any:
    """Return the credentials of a file; None without a file. Raises CliError."""
    if path is None:
        return None
    try:
        return json.loads(read_text_file(path, "credentials"))
    except ValueError:
        raise CliError(f"{path} is not JSON", ExitCode.USAGE) from None
