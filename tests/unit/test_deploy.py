"""The files for containers, as far as they can be checked without one."""

import shlex
import tomllib
from pathlib import Path

import pytest
import typer
import yaml

from api.cli.main import app

ROOT = Path(__file__).parents[2]
COMMANDS = set(typer.main.get_group(app).commands)


@pytest.fixture(scope="module")
def services():
    return yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text())["services"]


def test_the_stores_are_of_the_versions_we_promise(services):
    assert services["valkey"]["image"] == "valkey/valkey:9"
    assert services["postgres"]["image"] == "postgres:18"


def test_valkey_keeps_what_it_acknowledged(services):
    words = shlex.split(" ".join(services["valkey"]["command"]))

    assert words[words.index("--appendonly") + 1] == "yes"
    assert words[words.index("--appendfsync") + 1] == "always"
    assert words[words.index("--maxmemory-policy") + 1] == "noeviction"


@pytest.mark.parametrize("service", ["migrate", "api", "sweeper", "deliverer", "worker"])
def test_our_services_run_commands_that_exist(services, service):
    command, *options = services[service]["command"]

    known = {
        option
        for parameter in typer.main.get_group(app).commands[command].params
        for option in parameter.opts
    }
    assert command in COMMANDS
    assert {option for option in options if option.startswith("--")} <= known


def test_every_service_has_a_health_check_and_time_to_end(services):
    lasting = {name: service for name, service in services.items() if name != "migrate"}

    assert all("test" in service["healthcheck"] for service in lasting.values())
    assert all("stop_grace_period" in service for service in lasting.values())


def test_every_volume_that_is_used_is_declared(services):
    declared = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text())["volumes"]
    used = {
        volume.split(":")[0]
        for service in services.values()
        for volume in service.get("volumes", [])
    }

    assert used == set(declared)


def test_whoever_reads_or_writes_the_archive_has_it(services):
    for name in ("api", "sweeper", "deliverer", "worker"):
        archive_url = services[name]["environment"]["MILLSTREAM_ARCHIVE_URL"]
        folders = [volume.split(":")[1] for volume in services[name]["volumes"]]

        assert archive_url.removeprefix("file://") in folders


def test_the_image_has_spark_and_makes_wheels_of_what_is_none():
    dockerfile = (ROOT / "Dockerfile").read_text()

    assert "pip wheel --require-hashes --no-deps --wheel-dir /wheels" in dockerfile
    assert "'.[spark]'" in dockerfile


def test_the_api_is_published_on_loopback_only(services):
    assert services["api"]["ports"] == ["127.0.0.1:8080:8080"]


def test_the_image_runs_a_command_that_exists_as_somebody_else_than_root():
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    [command] = [line for line in lines if line.startswith("CMD")]
    [user] = [line.split()[1] for line in lines if line.startswith("USER")]

    assert yaml.safe_load(command.removeprefix("CMD "))[0] in COMMANDS
    assert user != "root"
    assert sum(line.startswith("FROM") for line in lines) == 2


def test_the_make_targets_we_name_exist():
    makefile = (ROOT / "Makefile").read_text()

    for target in ("install", "up", "test", "check", "lint", "bench", "openapi"):
        assert f"\n{target}:" in makefile


def test_the_image_has_every_package_of_the_wheel():
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    kept = (ROOT / ".dockerignore").read_text().splitlines()

    assert {f"!{package}" for package in wheel["targets"]["wheel"]["packages"]} <= set(kept)
