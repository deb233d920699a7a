"""Lua scripts of the hot store, one operation each, and their loader.

A line `-- @include name` is replaced by `lib/name.lua`. A header states the purpose of the script, its KEYS, ARGV
and reply, and the numbered invariants it keeps.
"""

import hashlib
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

_FOLDER = Path(__file__).parent
_INCLUDE = re.compile(r"^-- @include (\w+)$", re.MULTILINE)


class Script(NamedTuple):
    """A script's text with its includes, and the SHA-1 by which servers identify it."""

    name: str
    text: str
    sha: str


@cache
def script(name: str) -> Script:
    """Return the script of this name, from whichever folder holds it."""
    text = _INCLUDE.sub(_included, _paths()[name].read_text())
    sha = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
    return Script(name, text, sha)


def script_names() -> list[str]:
    """Return the names of all scripts, sorted."""
    return sorted(_paths())


@cache
def _paths() -> dict[str, Path]:
    """Return the script files by name; names are unique across the folders."""
    return {path.stem: path for path in _FOLDER.glob("*/*.lua") if path.parent.name != "lib"}


def _included(match: re.Match[str]) -> str:
    return (_FOLDER / "lib" / f"{match[1]}.lua").read_text()
