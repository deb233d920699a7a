"""Another store in place of the bundled Valkey: a Redis from PATH."""

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

from storage.embedded.valkey import ValkeyServer
from storage.settings import Durability

MISSING = "redis-server is not on PATH: install it (on Debian: apt-get install --no-install-recommends redis-server)"
UNAVAILABLE = 4
"""Exit code when the store is not available, the same as of the `millstream` command."""


def find_redis() -> Path | None:
    """Return the path of redis-server, or None."""
    found = shutil.which("redis-server")
    return None if found is None else Path(found)


class NamedServer(ValkeyServer):
    """The given program, configured like the Valkey of a deployment; None: the bundled Valkey."""

    def __init__(self, data: Path, program: Path | None, durability: Durability = "always") -> None:
        super().__init__(data, durability=durability)
        if program is not None:
            self._binary, self._allocator = program, None

    def version(self) -> str:
        """Return name and version as reported: `Redis server v=7.0.15`."""
        words = [str(self._binary), "--version"]
        said = subprocess.run(words, capture_output=True, text=True, check=True).stdout
        return " ".join(said.split()[:3])


def add_store(words: argparse.ArgumentParser) -> None:
    """Add the option that `store_of` reads."""
    words.add_argument("--store", choices=["bundled", "redis"], default="bundled")


def store_of(told: argparse.Namespace) -> Path | None:
    """Return the program of the store, None for the bundled one; exit if it is missing."""
    if told.store == "bundled":
        return None
    found = find_redis()
    if found is None:
        sys.stderr.write(f"{MISSING}\n")
        sys.exit(UNAVAILABLE)
    return found
