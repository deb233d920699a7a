"""The compose file of replicated stores, over that of one store."""

import json
import shlex
from importlib.resources import files
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft7Validator

from api.config.settings import read_settings
from storage.embedded.replicated_stores import StoreMember, create_record
from tests.documentation import ROOT

OVERRIDE = yaml.safe_load((ROOT / "deploy" / "compose.replicated.yaml").read_text())
ONE_STORE = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text())
STORES = ("valkey", "valkey-2", "valkey-3")
OF_UP = {"port", "bind", "dir", "logfile", "daemonize", "pidfile", "aof-use-rdb-preamble"}
OF_UP_VALUES = {"repl-diskless-sync-delay", "maxmemory", "repl-backlog-size"}
PASSWORDS = {"requirepass", "masterauth"}


def settings_of(store: str) -> dict[str, str]:
    words = [word for word in OVERRIDE["services"][store]["command"] if word.startswith("--")]
    return dict(word.removeprefix("--").split(" ", 1) for word in words)


def test_file_matches_specification():
    schema = files("check_jsonschema.builtin_schemas") / "vendor" / "compose-spec.json"

    faults = list(Draft7Validator(json.loads(schema.read_text())).iter_errors(OVERRIDE))

    assert [fault.message for fault in faults] == []


@pytest.mark.parametrize("store", STORES)
def test_store_has_settings_of_a_member(store, tmp_path):
    """Those of the members that `millstream up --replicas` starts, which the tests run."""
    member = StoreMember(tmp_path, create_record(tmp_path, len(STORES)), 1)
    member.prepare()
    lines = (member.directory / "valkey.conf").read_text().splitlines()
    expected = {line.split(" ", 1)[0]: shlex.split(line)[1:] for line in lines}

    settings = settings_of(store)

    assert settings.keys() == expected.keys() - OF_UP - {"repl-diskless-sync-delay"}
    for name in settings.keys() - OF_UP_VALUES - PASSWORDS:
        assert shlex.split(settings[name]) == expected[name], name
    assert len({settings[name] for name in PASSWORDS}) == 1


def test_processes_name_all_stores(monkeypatch):
    processes = ONE_STORE["services"].keys() - {"valkey", "postgres", "prometheus", "grafana"}
    password = "${MILLSTREAM_STORE_PASSWORD:?choose one}"
    for name in ("MILLSTREAM_REDIS_URL", "MILLSTREAM_DURABILITY"):
        monkeypatch.delenv(name, raising=False)

    for process in processes:
        environment = OVERRIDE["services"][process]["environment"]
        url = environment["REDIS_URL"].replace(password, "secret")
        monkeypatch.setenv("REDIS_URL", url)
        settings = read_settings(durability=environment["MILLSTREAM_DURABILITY"])

        assert settings.redis_url is not None
        assert url == f"redis://:secret@{','.join(f'{store}:6379' for store in STORES)}/0"


def test_volumes_are_declared_in_either_file():
    used = {
        Path(volume.split(":")[0]).name
        for store in STORES[1:]
        for volume in OVERRIDE["services"][store]["volumes"]
    }

    assert used == OVERRIDE["volumes"].keys() == set(STORES[1:])
