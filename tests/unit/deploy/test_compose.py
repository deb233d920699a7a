"""Container and service files: everything that can be checked without starting them."""

import json
import shlex
import shutil
import subprocess
import tomllib
from configparser import RawConfigParser
from importlib.resources import files
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft7Validator

from api.cli.main import app

ROOT = Path(__file__).parents[3]
COMMANDS = set(app.commands)


COMPOSE = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text())


@pytest.fixture(scope="module")
def services():
    return COMPOSE["services"]


def test_store_images_have_supported_versions(services):
    assert services["valkey"]["image"] == "valkey/valkey:9"
    assert services["postgres"]["image"] == "postgres:18"


def test_valkey_is_configured_for_durability(services):
    words = shlex.split(" ".join(services["valkey"]["command"]))

    assert words[words.index("--appendonly") + 1] == "yes"
    assert words[words.index("--appendfsync") + 1] == "always"
    assert words[words.index("--maxmemory-policy") + 1] == "noeviction"


@pytest.mark.parametrize("service", ["migrate", "api", "sweeper", "deliverer", "worker"])
def test_services_run_existing_commands_and_options(services, service):
    command, *options = services[service]["command"]

    known = {option for parameter in app.commands[command].params for option in parameter.opts}
    assert command in COMMANDS
    assert {option for option in options if option.startswith("--")} <= known


def test_services_have_health_check_and_stop_grace_period(services):
    lasting = {name: service for name, service in services.items() if name != "migrate"}

    assert all("test" in service["healthcheck"] for service in lasting.values())
    assert all("stop_grace_period" in service for service in lasting.values())


def test_used_volumes_are_declared(services):
    declared = COMPOSE["volumes"]
    used = {
        volume.split(":")[0]
        for service in services.values()
        for volume in service.get("volumes", [])
        if not volume.startswith("./")
    }

    assert used == set(declared)


def test_compose_file_matches_specification():
    schema = files("check_jsonschema.builtin_schemas") / "vendor" / "compose-spec.json"

    faults = list(Draft7Validator(json.loads(schema.read_text())).iter_errors(COMPOSE))

    assert [fault.message for fault in faults] == []


def test_mounted_files_and_references_exist(services):
    for service in services.values():
        for volume in service.get("volumes", []):
            if volume.startswith("./"):
                assert (ROOT / "deploy" / volume.split(":")[0]).exists(), volume
        for config in service.get("configs", []):
            assert config["source"] in COMPOSE["configs"]
        assert set(service.get("secrets", [])) <= set(COMPOSE["secrets"])
        assert set(service.get("depends_on", {})) <= set(services)


def test_embedded_configurations_are_valid_yaml():
    told = {name: yaml.safe_load(config["content"]) for name, config in COMPOSE["configs"].items()}

    paths = {job.get("metrics_path", "/metrics") for job in told["prometheus"]["scrape_configs"]}
    assert paths == {"/metrics", "/metrics/per-object"}


def test_monitoring_services_require_profile_and_loopback(services):
    asked_for = {name for name, service in services.items() if service.get("profiles")}

    assert asked_for == {"prometheus", "grafana"}
    assert {port.split(":")[0] for name in asked_for for port in services[name]["ports"]} == {
        "127.0.0.1"
    }


def test_systemd_unit_runs_existing_command_as_non_root():
    unit = RawConfigParser(strict=False)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(ROOT / "deploy" / "systemd" / "millstream.service")
    service = unit["Service"]

    program, command = service["ExecStart"].split()
    settings = dict(part.split("=", 1) for part in service["Environment"].split())
    state = f"/var/lib/{service['StateDirectory']}"

    assert (Path(program).name, command in COMMANDS) == ("millstream", True)
    assert service["User"] != "root"
    assert settings["MILLSTREAM_DATA"].startswith(f"{state}/")
    assert service["WorkingDirectory"] == state
    assert set(unit.sections()) == {"Unit", "Service", "Install"}


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd is not installed")
def test_systemd_analyze_verifies_the_unit():
    unit = ROOT / "deploy" / "systemd" / "millstream.service"

    done = subprocess.run(
        ["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False
    )

    lines = [line for line in done.stderr.splitlines() if "millstream.service" in line]
    assert [line for line in lines if "is not executable" not in line] == []


def test_services_that_use_the_archive_mount_it(services):
    for name in ("api", "sweeper", "deliverer", "worker"):
        archive_url = services[name]["environment"]["MILLSTREAM_ARCHIVE_URL"]
        folders = [volume.split(":")[1] for volume in services[name]["volumes"]]

        assert archive_url.removeprefix("file://") in folders


def stages() -> dict[str, list[str]]:
    """Instructions of each stage of the Dockerfile, the first its FROM."""
    text = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    parts: dict[str, list[str]] = {}
    for line in (line for line in text.splitlines() if line and not line.startswith("#")):
        if line.startswith("FROM "):
            name = line.split()[-1]
            parts[name] = []
        parts[name].append(line)
    return parts


def test_image_installs_only_what_locks_name():
    installs = [
        command
        for stage in stages().values()
        for line in stage
        for command in line.split("&&")
        if "pip install" in command
    ]

    assert len(installs) == 4
    assert all("--no-deps" in install for install in installs)
    assert all("--require-hashes" in it or "--no-build-isolation ." in it for it in installs)


def test_service_image_has_no_spark_and_worker_image_has():
    images = stages()

    assert "COPY --from=build /opt/millstream /opt/millstream" in images["service"]
    assert not any("spark" in line for line in images["build"])
    assert "COPY --from=build-worker /opt/millstream /opt/millstream" in images["worker"]
    assert "COPY requirements-spark.lock ./" in images["build-worker"]
    assert list(images)[-1] == "worker", "what `docker build .` makes"


def test_compose_builds_existing_targets(services):
    ours = {name: service for name, service in services.items() if "build" in service}

    assert {service["build"]["target"] for service in ours.values()} <= set(stages())
    assert [name for name in ours if ours[name]["build"]["target"] == "worker"] == ["worker"]
    assert ours["worker"]["image"] != ours["api"]["image"]


def test_api_is_published_on_loopback_only(services):
    assert services["api"]["ports"] == ["127.0.0.1:8080:8080"]


def test_image_runs_existing_command_as_numeric_non_root():
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    [command] = [line for line in lines if line.startswith("CMD")]
    [user] = [line.split()[1] for line in lines if line.startswith("USER")]

    assert yaml.safe_load(command.removeprefix("CMD "))[0] in COMMANDS
    assert user == "10001:10001", "a number, so that Kubernetes can tell that it is not root"


def test_documented_make_targets_exist():
    makefile = (ROOT / "Makefile").read_text()

    for target in ("install", "install-dev", "up", "test", "check", "lint", "bench", "openapi"):
        assert f"\n{target}:" in makefile


def test_docker_context_has_every_package_of_the_wheel():
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    lines = (ROOT / ".dockerignore").read_text().splitlines()

    assert {f"!{package}" for package in wheel["targets"]["wheel"]["packages"]} <= set(lines)
