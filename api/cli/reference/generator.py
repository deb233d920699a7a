"""Generator of the reference pages by their file names."""

from pathlib import Path
from typing import Any

from api.cli.reference.commands import commands_page
from api.cli.reference.errors import errors_page
from api.cli.reference.frames import frames_page
from api.cli.reference.limits import limits_page
from api.cli.reference.operations import operations_page
from api.cli.reference.settings import settings_page


def made_pages(app: Any) -> dict[str, str]:
    """Return the text of each page. `app`: the command line."""
    return {
        "commands.md": commands_page(app),
        "errors.md": errors_page(),
        "frames.md": frames_page(),
        "limits.md": limits_page(),
        "operations.md": operations_page(),
        "settings.md": settings_page(),
    }


def write_pages(folder: Path, app: Any) -> None:
    """Write each page; hand-written pages in the folder are left alone."""
    for name, text in made_pages(app).items():
        (folder / name).write_text(text)
