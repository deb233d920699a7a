"""Invalid settings, store addresses in particular: one-line errors without secrets."""

import re

import pytest

from api.config.settings import Settings
from storage.parquet.object_store import open_root
from storage.redis.transport.client import open_client, open_pool
from storage.settings import InvalidUrl
from tests.cli_commands import millstream

REDIS, POSTGRES = "redis://127.0.0.1:1/0", "postgresql://ada:lovelace@127.0.0.1:1/mill"


@pytest.fixture(autouse=True)
def stores(tmp_path, monkeypatch):
    """Two valid addresses where no store listens."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REDIS_URL", REDIS)
    monkeypatch.setenv("DATABASE_URL", POSTGRES)


@pytest.mark.parametrize(
    "url",
    [
        "redis://:p%40ss%2Fword@host:6379/0",
        "rediss://host",
        "redis://[::1]:6379",
        "unix:///run/it's a [50 %25] sock%23et?db=0",
    ],
)
def test_valid_redis_url_is_accepted(url):
    assert Settings(redis_url=url).storage().redis_url == url


@pytest.mark.parametrize(
    "url",
    [
        "postgres://u:p%40ss@host/db",
        "postgresql://host/db?sslmode=verify-full",
        "postgresql:///db?host=/run/postgres",
        "postgresql+asyncpg://u@[::1]:5432/db",
        "postgresql://u:p@pg-1:5432,pg-2,[::1]:5433/db?target_session_attrs=read-write",
        "postgresql://u:p@/db?host=pg-1,pg-2&port=5432,5432&target_session_attrs=read-write",
    ],
)
def test_valid_postgres_url_is_accepted(url):
    assert Settings(database_url=url).storage().database_url == url


@pytest.mark.parametrize("command", ["up", "serve", "sweep", "deliver", "migrate", "doctor"])
@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("REDIS_URL", "redis://:hush/x@host:6379", "setting redis_url: cannot be parsed"),
        ("REDIS_URL", "redis://:hush@host:abc", "setting redis_url: cannot be parsed"),
        ("REDIS_URL", "redis://[::1:6379", "setting redis_url: cannot be parsed"),
        ("REDIS_URL", "host:6379", "setting redis_url: use redis://"),
        ("DATABASE_URL", "postgresql://u:hush@x@host/db", "setting database_url: cannot be"),
        ("DATABASE_URL", "postgresql://u:hush#x@host/db", "setting database_url: cannot be"),
        ("DATABASE_URL", "postgresql://u:hush@host:abc/db", "setting database_url: cannot be"),
        ("DATABASE_URL", "postgresql://u:hush@one,two:abc/db", "setting database_url: cannot be"),
        ("DATABASE_URL", "postgresql://u:hush@one,/db", "setting database_url: cannot be"),
        ("DATABASE_URL", "postgresql://u:hush@a,b/db?host=c", "setting database_url: the address"),
        ("DATABASE_URL", "host=db password=hush", "setting database_url: use postgresql://"),
        ("DATABASE_URL", "mysql://u:hush@host/db", "setting database_url: use postgresql://"),
        ("MILLSTREAM_ARCHIVE_URL", "ftp://u:hush@host/x", "setting archive_url: use file"),
        (
            "MILLSTREAM_ARCHIVE_URL",
            "s3://key:hush/x@bucket",
            "setting archive_url: cannot be parsed",
        ),
        ("MILLSTREAM_ARCHIVE_URL", "file:///data/hush#1", "setting archive_url: cannot be parsed"),
        (
            "MILLSTREAM_ARCHIVE_URL",
            "file://rel/x",
            "setting archive_url: an archive URL must be file",
        ),
        (
            "MILLSTREAM_ARCHIVE_URL",
            "s3://b/p?regoin=x",
            "setting archive_url: unknown archive URL option",
        ),
    ],
)
def test_invalid_address_is_reported_in_one_line(monkeypatch, command, name, value, said):
    monkeypatch.setenv(name, value)

    ran = millstream(command)

    assert ran.code == 2
    assert ran.err.startswith(f"millstream: {said}")
    assert ran.err.count("\n") == 1
    assert "hush" not in ran.err + ran.out


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("CORS_ORIGINS", "https://a.example *", "cors_origins: '*' is not an origin"),
        ("WEBHOOK_ALLOW", "x/y", "webhook_allow: 'x/y' is not a host, address or network"),
        ("SECRET_KEYS", "hush", "secret_keys: a secret key must be 32 bytes in base64"),
        ("PUBLIC_URL", "x", "public_url: 'x' is not an origin"),
    ],
)
def test_invalid_setting_is_reported_before_start(monkeypatch, name, value, said):
    monkeypatch.setenv(f"MILLSTREAM_{name}", value)

    ran = millstream("up")

    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert ran.err.startswith(f"millstream: setting {said}")
    assert "hush" not in ran.err


@pytest.mark.parametrize("name", [".env", "millstream.toml"])
def test_file_in_wrong_encoding_is_reported_in_one_line(tmp_path, name):
    """UTF-16, as written by the `>` of some shells."""
    (tmp_path / name).write_text("MILLSTREAM_PORT=1", encoding="utf-16")

    started, checked = millstream("up"), millstream("config", "check")

    assert (started.code, checked.code) == (2, 1)
    assert started.err.startswith("millstream: cannot read .env or millstream.toml: 'utf-8'")
    assert checked.err.startswith(f"cannot read {name}: 'utf-8'")


@pytest.mark.parametrize(
    ("text", "said"),
    [(None, "cannot read"), ("hush", ": a secret key must be 32 bytes in base64")],
)
def test_invalid_secret_keys_file_is_reported_before_start(tmp_path, monkeypatch, text, said):
    file = tmp_path / "keys"
    if text:
        file.write_text(text)
    monkeypatch.setenv("MILLSTREAM_SECRET_KEYS_FILE", str(file))

    ran = millstream("up", "--port", "0", "--data", str(tmp_path / "data"))

    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "secret_keys_file" in ran.err
    assert said in ran.err
    assert "hush" not in ran.err


@pytest.mark.parametrize("command", ["sweep", "deliver", "worker", "doctor"])
def test_unknown_postgres_option_is_reported_in_one_line(monkeypatch, command):
    monkeypatch.setenv("DATABASE_URL", f"{POSTGRES}?schema=public")

    ran = millstream(command)

    assert ran.code == 2
    assert ran.err == 'millstream: setting database_url: invalid connection option "schema"\n'


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("foo=1", "invalid connection option 'foo'"),
        ("socket_timeout=x", "Invalid value for 'socket_timeout' in connection URL."),
    ],
)
@pytest.mark.parametrize("opening", [open_pool, open_client])
async def test_unknown_redis_option_is_reported(opening, option, said):
    with pytest.raises(InvalidUrl, match=f"redis_url: {re.escape(said)}"):
        opening(f"{REDIS}?{option}")


@pytest.mark.parametrize("name", ["REDIS_URL", "DATABASE_URL"])
def test_empty_address_counts_as_unset(monkeypatch, name):
    monkeypatch.setenv(name, "")

    ran = millstream("sweep")

    assert (ran.code, "set REDIS_URL and DATABASE_URL" in ran.err) == (2, True)


def test_settings_error_does_not_show_the_value(monkeypatch):
    monkeypatch.setenv("DATABASE_URL", "mysql://u:hush@host/db")

    with pytest.raises(ValueError, match="DATABASE_URL") as refused:
        Settings()

    assert "hush" not in str(refused.value)


def test_invalid_archive_url_is_rejected_when_opened():
    with pytest.raises(ValueError, match="file:///directory or s3://bucket"):
        open_root("http://host/x")
