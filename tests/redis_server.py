"""Another program in the place of the bundled Valkey: a Redis from PATH, for those who run that."""

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

from storage.embedded.valkey import ValkeyServer
from storage.settings import Durability

MISSING = "redis-server is not on PATH: install it (on Debian: apt-get install --no-install-recommends redis-server)"
UNAVAILABLE = 4
"""The exit code of a run that cannot be had on this machine, as of the `millstream` command."""


def find_redis() -> Path | None:
    """Its program; None where there is none."""
    found = shutil.which("redis-server")
    return None if found is None else Path(found)


class NamedServer(ValkeyServer):
    """The program that is named, configured as the Valkey of a deployment is; None: the bundled Valkey itself."""

    def __init__(self, data: Path, program: Path | None, durability: Durability = "always") -> None:
        super().__init__(data, durability=durability)
        if program is not None:
            self._binary, self._allocator = program, None

    def version(self) -> str:
        """Which server it is, as it says: `Redis server v=7.0.15`."""
        words = [str(self._binary), "--version"]
        said = subprocess.run(words, capture_output=True, text=True, check=True).stdout
        return " ".join(said.split()[:3])


def add_store(words: argparse.ArgumentParser) -> None:
    """The option that `store_of` reads."""
    words.add_argument("--store", choices=["bundled", "redis"], default="bundled")


def store_of(told: argparse.Namespace) -> Path | None:
    """The program of the store; None: the bundled one. Ends the run where it is missing."""
    if told.store == "bundled":
        return None
    found = find_redis()
    if found is None:
        sys.stderr.write(f"{MISSING}\n")
        sys.exit(UNAVAILABLE)
    return found
