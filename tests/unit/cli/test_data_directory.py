"""The data directory: its lock and its layout version."""

import os
import socket
import subprocess
import sys

import pytest
from pydantic import SecretStr

from api.cli.config.process_settings import child_environment
from api.cli.errors import CliError, ExitCode
from api.cli.up.data_directory import (
    LAYOUT_VERSION,
    LAYOUT_VERSIONS,
    acquire_lock,
    check_version,
    data_directory,
    in_use,
)
from api.cli.up.listener import check_host, listening, url_of
from api.config.settings import Settings


def test_new_directory_gets_current_version(tmp_path):
    check_version(tmp_path)
    check_version(tmp_path)

    assert (tmp_path / "version").read_text() == f"{LAYOUT_VERSION}\n"


def test_newer_directory_is_rejected(tmp_path):
    newer = LAYOUT_VERSIONS[-1] + 1
    (tmp_path / "version").write_text(f"{newer}\n")

    with pytest.raises(
        CliError, match=f"has layout version {newer}, but this version of Millstream"
    ):
        check_version(tmp_path)


def test_older_directory_error_does_not_suggest_upgrade(tmp_path):
    (tmp_path / "version").write_text(f"{LAYOUT_VERSION - 1}\n")

    with pytest.raises(CliError, match=r"use the version that wrote it$"):
        check_version(tmp_path)


def test_foreign_directory_is_rejected(tmp_path):
    (tmp_path / "holiday.jpg").touch()

    with pytest.raises(CliError, match="was not created by Millstream"):
        check_version(tmp_path)


def test_ephemeral_directory_is_removed(tmp_path):
    with data_directory(tmp_path, ephemeral=True) as data:
        (data / "something").touch()

    assert not data.exists()
    assert data != tmp_path


def test_file_as_data_directory_is_rejected(tmp_path):
    (tmp_path / "file").touch()

    with (
        pytest.raises(CliError, match=r"cannot use .* as data directory"),
        data_directory(tmp_path / "file" / "data", ephemeral=False),
    ):
        pass


def test_locked_directory_error_names_the_holder(tmp_path):
    with (
        acquire_lock(tmp_path),
        pytest.raises(
            CliError, match=f"in use by another Millstream .process {os.getpid()}"
        ) as raised,
        acquire_lock(tmp_path, wait_s=0.2),
    ):
        pass

    assert raised.value.code is ExitCode.UNAVAILABLE


def test_lock_is_held_until_inheriting_children_exit(tmp_path):
    with acquire_lock(tmp_path) as lock:
        child = subprocess.Popen(
            [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=[lock]
        )
    held = in_use(tmp_path)
    child.communicate(b"\n")

    assert held
    assert not in_use(tmp_path)


def test_port_zero_selects_free_port():
    with listening("127.0.0.1", 0) as listener:
        assert url_of(listener) == f"http://127.0.0.1:{listener.getsockname()[1]}"


def test_port_in_use_is_reported_in_one_line():
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]

        with (
            pytest.raises(CliError, match=f"port {port} on 127.0.0.1 is in use") as raised,
            listening("127.0.0.1", port),
        ):
            pass

    assert raised.value.code is ExitCode.UNAVAILABLE


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.com"])
def test_non_loopback_host_requires_insecure_in_open_mode(host):
    with pytest.raises(CliError, match="--insecure") as raised:
        check_host(Settings(host=host, auth="open"))

    check_host(Settings(host=host, auth="open", insecure=True))
    check_host(Settings(host=host))
    assert raised.value.code is ExitCode.USAGE


def test_child_environment_reproduces_settings(monkeypatch, tmp_path):
    settings = Settings(
        port=0,
        data=tmp_path,
        ephemeral=True,
        redis_url=SecretStr("unix:///a?db=0"),
        durability="everysec",
    )
    monkeypatch.setenv("MILLSTREAM_PORT", "1")

    for name, value in child_environment(settings, {"EXTRA": "1"}).items():
        monkeypatch.setenv(name, value)

    assert Settings() == settings
    assert os.environ["REDIS_URL"] == "unix:///a?db=0"
    assert os.environ["EXTRA"] == "1"
