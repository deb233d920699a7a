"""`millstream config`: every setting with its origin, and unknown settings."""

import pytest

from api.config.settings import read_settings
from tests.cli_commands import millstream


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A folder with settings in each source."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in ("DATABASE_URL", "REDIS_URL", "MILLSTREAM_URL", "MILLSTREAM_PORT"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "millstream.toml").write_text("port = 9000\nworkers = 2\n")
    (tmp_path / ".env").write_text("MILLSTREAM_WORKERS=3\nDATABASE_URL=postgresql://u:hush@h/d\n")
    monkeypatch.setenv("MILLSTREAM_ARCHIVE_URL", "s3://key:hush@bucket/prefix")
    return tmp_path


def test_each_value_is_shown_with_its_origin():
    ran = millstream("config", "show", "--origin", "-o", "json", "--api-key", "hush")

    told = {row["name"]: (row["value"], row["origin"]) for row in ran.json}
    assert told["port"] == ("9000", "millstream.toml")
    assert told["workers"] == ("3", ".env")
    assert told["archive_url"] == ("s3://**********@bucket/prefix", "environment")
    assert told["database_url"] == ("**********", ".env")
    assert told["host"] == ("127.0.0.1", "default")
    assert told["url"] == ("http://127.0.0.1:8080", "default")
    assert told["api_key"] == ("**********", "option --api-key")
    assert "hush" not in ran.out


def test_check_succeeds_when_all_settings_are_known():
    assert millstream("config", "check").code == 0
    assert millstream("config", "path").out.endswith("/config/millstream/config.toml\n")


def test_unknown_setting_is_reported_with_suggestion(folder, monkeypatch):
    monkeypatch.setenv("MILLSTREAM_LOG_LEVL", "debug")
    (folder / "millstream.toml").write_text("prot = 9000\n")
    (folder / ".env").write_text("MILLSTREAM_WORKERS=none\nELSEWHERE=1\n")

    ran = millstream("config", "check")

    assert ran.code == 1
    assert ran.err.splitlines() == [
        "environment: unknown setting MILLSTREAM_LOG_LEVL: did you mean 'MILLSTREAM_LOG_LEVEL'?",
        "millstream.toml: unknown setting prot: did you mean 'port'?",
        "setting workers: Input should be a valid integer, unable to parse string as an integer",
        "millstream: 3 settings are invalid (see above)",
    ]


def test_unknown_setting_is_reported_at_start(folder, monkeypatch):
    monkeypatch.setenv("MILLSTREAM_WORKRES", "4")
    (folder / ".env").unlink()

    ran = millstream("serve")

    assert ran.code == 2
    assert ran.err.splitlines() == [
        "millstream: environment: unknown setting MILLSTREAM_WORKRES: did you mean 'MILLSTREAM_WORKERS'?",
        "millstream: set REDIS_URL and DATABASE_URL, or use `millstream up`",
    ]


def test_kubernetes_service_variables_are_ignored(folder, monkeypatch):
    """https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables"""
    address = "tcp://10.96.7.8:8080"
    links = {"PORT": address, "SERVICE_HOST": "10.96.7.8", "SERVICE_PORT": "8080"}
    links |= {"SERVICE_PORT_HTTP": "8080", "PORT_8080_TCP": address}
    links |= {"PORT_8080_TCP_PROTO": "tcp", "PORT_8080_TCP_ADDR": "10.96.7.8"}
    links |= {"VALKEY_PORT": "tcp://10.96.7.9:6379", "VALKEY_SERVICE_PORT": "6379"}
    for name, value in links.items():
        monkeypatch.setenv(f"MILLSTREAM_{name}", value)
    (folder / "millstream.toml").unlink()

    assert millstream("config", "check").code == 0
    assert read_settings().port == 8080


@pytest.mark.parametrize(
    ("text", "said"), [("workers = 'a'", "setting workers"), ("=", "cannot read millstream.toml")]
)
def test_invalid_setting_is_reported_in_one_line(folder, text, said):
    (folder / "millstream.toml").write_text(text)
    (folder / ".env").unlink()

    ran = millstream("config", "show")

    assert ran.code == 2
    assert ran.err.startswith(f"millstream: {said}")
    assert ran.err.count("\n") == 1
