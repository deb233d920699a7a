"""`millstream doctor` against a service."""

from typing import Any

import pytest

from tests.cli_commands import CommandResult, millstream

NOWHERE = "http://127.0.0.1:9"


@pytest.fixture(autouse=True)
def empty_folder(monkeypatch, tmp_path):
    """A working directory without a data directory, and no profiles."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))


def findings(done: CommandResult) -> dict[str, dict[str, Any]]:
    return {finding["check"]: finding for finding in done.json}


@pytest.mark.parametrize("source", ["option", "environment", "profile"])
def test_doctor_examines_service_of_url(source, service_url, monkeypatch, tmp_path):
    """The data directory of the current folder was examined, whatever the URL."""
    path = tmp_path / "millstream" / "config.toml"
    path.parent.mkdir()
    words: list[str] = []
    if source == "option":
        words = ["--url", service_url]
    elif source == "environment":
        monkeypatch.setenv("MILLSTREAM_URL", service_url)
    else:
        path.write_text(f'profile = "here"\n[profiles.here]\nurl = "{service_url}"\n')

    done = millstream("doctor", "-o", "json", *words)

    by_check = findings(done)
    assert by_check["service"]["detail"].startswith(f"{service_url} is ready")
    assert by_check["service clock"]["ok"] is True
    assert by_check["key"]["ok"] is True
    assert "api" in by_check["processes"]["detail"]
    assert by_check["sweeper"]["ok"] is False  # this service has none
    assert {"python", "open files", "disk"} < set(by_check)
    assert not {"stores", "port"} & set(by_check)
    assert done.code == 1


def test_doctor_reports_unreachable_service():
    done = millstream("doctor", "-o", "json", "--url", NOWHERE)

    assert findings(done)["service"]["detail"].startswith(f"no response from {NOWHERE}")
    assert done.code == 1


def test_doctor_does_not_examine_machine_of_remote_service():
    done = millstream("doctor", "-o", "json", "--url", "http://nowhere.invalid")

    assert list(findings(done)) == ["service", "millstream", "python"]


def test_doctor_examines_machine_without_url(monkeypatch):
    monkeypatch.delenv("MILLSTREAM_URL", raising=False)

    done = millstream("doctor", "--json", "--port", "0")

    assert {"open files", "port", "stores"} < set(findings(done))
    assert "service" not in findings(done)


def test_doctor_examines_deployment_that_options_select(service_url, monkeypatch, tmp_path):
    """A profile of another service is no reason to leave out the data directory that was named."""
    monkeypatch.setenv("MILLSTREAM_URL", service_url)
    words = ("--data", str(tmp_path / "data"), "--port", "0")

    local = millstream("doctor", "-o", "json", *words)
    remote = millstream("doctor", "-o", "json", *words, "--url", service_url)

    assert {"port", "stores"} < set(findings(local))
    assert "service" not in findings(local)
    assert "service" in findings(remote)
