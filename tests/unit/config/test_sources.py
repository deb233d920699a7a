"""Origins of settings, and redaction of secrets."""

from api.config.settings import ORIGINS, read_settings
from api.config.sources import COMMAND, DEFAULT, effective_settings, with_origins


def settings_by_name(settings):
    return {
        effective_setting.name: effective_setting
        for effective_setting in effective_settings(settings)
    }


def test_first_source_determines_setting(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "millstream.toml").write_text("workers = 3\nport = 9001\n")
    monkeypatch.setenv("MILLSTREAM_PORT", "9002")

    values = settings_by_name(read_settings())

    assert (values["port"].value, values["port"].origin) == ("9002", "environment")
    assert (values["workers"].value, values["workers"].origin) == ("3", "millstream.toml")
    assert values["host"].origin == DEFAULT


def test_child_process_learns_origins_of_settings(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MILLSTREAM_PORT", "9002")
    settings = read_settings(workers=2)
    environment = with_origins(settings, {"MILLSTREAM_PORT": "9002", "MILLSTREAM_WORKERS": "2"})

    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    values = settings_by_name(read_settings())

    assert ORIGINS in environment
    assert (values["workers"].value, values["workers"].origin) == ("2", COMMAND)
    assert values["port"].origin == "environment"
    assert values["host"].origin == DEFAULT


def test_secrets_are_redacted(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REDIS_URL", "redis://:hunter2@localhost:6379")
    monkeypatch.setenv("MILLSTREAM_ARCHIVE_URL", "s3://key:hunter2@bucket/path")

    values = [effective_setting.value for effective_setting in effective_settings(read_settings())]

    assert not any("hunter2" in value for value in values)
