"""The locks: complete, hashed, and of one mind."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
LOCKS = ("requirements.lock", "requirements-spark.lock", "requirements-dev.lock")
ENTRY = re.compile(
    r"^([a-z0-9-]+)==(\S+) \\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)", re.MULTILINE
)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def entries(lock: str) -> dict[str, tuple[str, str]]:
    """Version and hashes of each package."""
    text = (ROOT / lock).read_text()
    return {name: (version, hashes) for name, version, hashes in ENTRY.findall(text)}


def names(requirements: list[Any]) -> set[str]:
    """The packages that requirements name, with those of included groups."""
    named: set[str] = set()
    for requirement in requirements:
        if isinstance(requirement, dict):
            named |= names(PROJECT["dependency-groups"][requirement["include-group"]])
        else:
            named.add(re.split(r"[\[<>=]", requirement)[0])
    return named


RUNTIME = names(PROJECT["project"]["dependencies"]) | names(PROJECT["dependency-groups"]["build"])
SPARK = names(PROJECT["project"]["optional-dependencies"]["spark"])
SPARK_BUILD = names(PROJECT["dependency-groups"]["spark-build"])


@pytest.mark.parametrize("lock", LOCKS)
def test_lock_has_only_pinned_and_hashed_packages(lock):
    lines = (ROOT / lock).read_text().splitlines()

    named = [line for line in lines if line and line[0] not in " #"]
    assert len(entries(lock)) == len(named) > 50
    assert not any("://" in line for line in lines)


NODE_LOCKS = sorted(
    path.relative_to(ROOT).as_posix()
    for path in ROOT.glob("[!.]*/**/package-lock.json")
    if "node_modules" not in path.parts
)


@pytest.mark.parametrize("lock", NODE_LOCKS)
def test_node_lock_has_hashes_and_no_addresses(lock):
    text = (ROOT / lock).read_text()
    packages = {name: entry for name, entry in json.loads(text)["packages"].items() if name}

    assert "://" not in text
    assert all(entry["integrity"].startswith("sha512-") for entry in packages.values())


@pytest.mark.parametrize("lock", LOCKS[:2])
def test_lock_agrees_with_development_lock(lock):
    development = entries("requirements-dev.lock")

    assert {name: development.get(name) for name in entries(lock)} == entries(lock)


def test_runtime_lock_has_no_spark_and_no_tools():
    runtime = set(entries("requirements.lock"))

    assert runtime >= RUNTIME
    assert not runtime & (SPARK | SPARK_BUILD | {"pytest", "mypy", "numpy"})


def test_other_locks_have_what_they_are_for():
    assert set(entries("requirements-spark.lock")) >= RUNTIME | SPARK | SPARK_BUILD
    assert set(entries("requirements-dev.lock")) >= names(PROJECT["dependency-groups"]["dev"])
