"""Editor of the file of profiles: it keeps comments, and only its owner can read the file."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from api.cli.config.profiles import did_you_mean, read_config
from api.cli.errors import CliError, ExitCode

if TYPE_CHECKING:
    from tomlkit import TOMLDocument

DIRECTORY_MODE = 0o700
SELECTED = "profile"
PROFILES = "profiles"


def put_profile(path: Path, name: str, values: Mapping[str, str], *, selects: bool) -> None:
    """Create or replace a profile; the first one is selected in any case."""
    import tomlkit

    with _changed(path) as document:
        profiles = document.setdefault(PROFILES, tomlkit.table(is_super_table=True))
        profiles[name] = _absolute({field: value for field, value in values.items() if value})
        if selects or SELECTED not in document:
            _select(document, name)


def _absolute(values: dict[str, str]) -> dict[str, str]:
    """Return the values with a path that is valid in every folder."""
    if "ca_file" in values:
        values["ca_file"] = str(Path(values["ca_file"]).expanduser().resolve())
    return values


def select_profile(path: Path, name: str) -> None:
    """Make a profile the default. Raises CliError if it does not exist."""
    with _changed(path) as document:
        _check_exists(path, document, name)
        _select(document, name)


def remove_profile(path: Path, name: str) -> None:
    """Delete a profile; without the selected one, none is selected. Raises CliError."""
    with _changed(path) as document:
        _check_exists(path, document, name)
        del document[PROFILES][name]
        if document.get(SELECTED) == name:
            del document[SELECTED]


def _check_exists(path: Path, document: Mapping[str, Any], name: str) -> None:
    profiles = document.get(PROFILES, {})
    if name not in profiles:
        hint = did_you_mean(name, profiles)
        raise CliError(f"unknown profile {name!r} in {path}{hint}", ExitCode.NOT_FOUND)


def _select(document: "TOMLDocument", name: str) -> None:
    """Set the default, which must stand before the first table of the file."""
    import tomlkit

    if SELECTED in document:
        document[SELECTED] = name
        return
    rest = document.copy()
    document.clear()
    document.add(SELECTED, tomlkit.item(name))
    document.add(tomlkit.nl())
    for key, value in rest.items():
        document.add(key, value)


@contextmanager
def _changed(path: Path) -> Iterator["TOMLDocument"]:
    """Read the file, and replace it by what the block makes of it."""
    import tomlkit

    read_config(path)  # raises for invalid content
    document = tomlkit.parse(path.read_text()) if path.exists() else tomlkit.document()
    yield document
    try:
        _replace(path.resolve(), tomlkit.dumps(document))
    except OSError as error:
        raise CliError(f"cannot write {path}: {error.strerror}") from None


def _replace(path: Path, text: str) -> None:
    """Replace a file at once by one that only its owner can read (mode 0600)."""
    import tempfile

    path.parent.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
    descriptor, written = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(written).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(written).unlink()
        raise
