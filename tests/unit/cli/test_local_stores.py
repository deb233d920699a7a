"""Private stores of a data directory, and the choice to replicate them."""

from pathlib import Path

import pytest
from pydantic import SecretStr, ValidationError

from api.cli.errors import CliError
from api.cli.up.local_stores import apply_replicas, memory_bytes, store_servers, store_settings
from api.config.settings import Settings
from storage.domain import limits
from storage.embedded.replicated_stores import read_record


def stored(settings: Settings, data: Path) -> tuple[list[str], str]:
    """Names of the servers, and the durability of the children's settings."""
    names = [server.name for server in store_servers(settings, data)]
    return names, store_settings(settings, data).get("durability", settings.durability)


def test_store_is_alone_by_default(tmp_path):
    settings = Settings()

    assert apply_replicas(settings, tmp_path) == ""
    assert stored(settings, tmp_path) == (["valkey", "postgres"], "always")
    assert read_record(tmp_path) is None


@pytest.mark.parametrize("replicas", [2, 4])
def test_replicas_are_remembered_by_data_directory(replicas, tmp_path):
    notice = apply_replicas(Settings(replicas=replicas), tmp_path)
    later = apply_replicas(Settings(), tmp_path)

    assert (tmp_path / "version").read_text() == "4\n"  # earlier builds refuse it
    names, durability = stored(Settings(), tmp_path)
    assert names == [f"valkey {number}" for number in range(1, replicas + 2)] + ["postgres"]
    assert durability == "replicated"
    assert notice.startswith(f"replicated: {replicas + 1} stores on this machine, for trying")
    assert "--replicas is not needed again" not in notice
    assert "--replicas is not needed again" in later


def test_two_stores_are_told_to_stop_with_either(tmp_path):
    assert "writes stop while either of them is away" in apply_replicas(
        Settings(replicas=1), tmp_path
    )


@pytest.mark.parametrize("replicas", [-1, 0, 3, 5])
def test_other_numbers_of_replicas_are_refused(replicas):
    with pytest.raises(ValidationError, match="use 2 or 4"):
        Settings(replicas=replicas)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"replicas": 2, "durability": "everysec"}, "everysec cannot be combined"),
        ({"replicas": 2, "redis_url": SecretStr("redis://store")}, "REDIS_URL names stores"),
        ({"durability": "replicated"}, "use --replicas 2"),
    ],
)
def test_contradicting_settings_are_refused(settings, reason, tmp_path):
    with pytest.raises(CliError, match=reason):
        apply_replicas(Settings(**settings), tmp_path)

    assert read_record(tmp_path) is None


def test_number_of_stores_cannot_be_changed(tmp_path):
    apply_replicas(Settings(replicas=2), tmp_path)

    with pytest.raises(CliError, match="has 3 stores"):
        apply_replicas(Settings(replicas=4), tmp_path)


def test_external_store_takes_precedence_over_directory(tmp_path):
    apply_replicas(Settings(replicas=2), tmp_path)
    external = Settings(redis_url=SecretStr("redis://store"))

    assert apply_replicas(external, tmp_path) == ""
    assert stored(external, tmp_path) == (["postgres"], "always")


def test_members_share_default_memory():
    assert memory_bytes(Settings(), stores=3) <= max(
        limits.MEMORY_BYTES_MIN, memory_bytes(Settings()) // 3
    )
    assert memory_bytes(Settings(memory_mb=512), stores=3) == 512 * limits.MIB
