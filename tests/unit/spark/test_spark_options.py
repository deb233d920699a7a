"""Options of Spark, and the settings that travel with tasks."""

import pickle
import shlex
from pathlib import Path

import pytest

from spark_worker.runtime import task_daemon
from spark_worker.runtime.spark_options import (
    options,
    python_of_executors,
    read_conf_file,
    write_options,
)
from spark_worker.settings import TaskSettings, WorkerSettings
from storage.settings import StorageSettings

STORES = StorageSettings(
    redis_url="redis://:secret@one",
    database_url="postgresql://me:secret@two",
    archive_url="s3://key:secret@b",
    secret_keys=("secret",),
)
HERE = WorkerSettings(storage=STORES, spark_master="local[2]")
CLUSTER = WorkerSettings(storage=STORES, spark_master="spark://h:7077")
FOLDER = Path("/scratch")


def with_conf(settings: WorkerSettings, **options: str) -> WorkerSettings:
    return settings.model_copy(update={"spark_conf": options})


@pytest.mark.parametrize("settings", [HERE, CLUSTER])
def test_options_contain_no_secret(settings):
    printed_options = options(settings, FOLDER)

    assert "secret" not in repr(printed_options)
    assert printed_options["spark.sql.session.timeZone"] == "UTC"
    assert printed_options["spark.python.daemon.module"] == task_daemon.__name__


def test_scratch_path_may_contain_any_characters():
    printed_options = options(HERE, Path("""/my data/it's "ä" \\ #1"""))

    [where, *others] = shlex.split(printed_options["spark.driver.extraJavaOptions"])
    assert where == """-Djava.io.tmpdir=/my data/it's "ä" \\ #1"""
    assert all(one.startswith("-") for one in others)


def test_spark_binds_to_loopback_in_local_mode():
    assert options(HERE, FOLDER)["spark.driver.bindAddress"] == "127.0.0.1"
    assert "spark.driver.bindAddress" not in options(CLUSTER, FOLDER)


def test_site_decides_about_what_the_worker_does_not_need():
    site = {
        "spark.driver.host": "worker-1",
        "spark.driver.port": "7078",
        "spark.ui.enabled": "true",
        "spark.driver.extraJavaOptions": "-Dkrb=1",
    }

    chosen = options(CLUSTER.model_copy(update={"spark_conf": site}), FOLDER)

    java_options = chosen.pop("spark.driver.extraJavaOptions")
    assert java_options.endswith(" -Dkrb=1")
    assert "-Duser.timezone=UTC" in java_options
    assert {name: chosen.get(name) for name in site if name in chosen} == {
        "spark.driver.host": "worker-1",
        "spark.driver.port": "7078",
        "spark.ui.enabled": "true",
    }


def test_packed_environment_is_the_python_of_executors():
    settings = CLUSTER.model_copy(
        update={
            "spark_environment": "s3a://b/env.tar.gz",
            "spark_conf": {"spark.archives": "data.zip#data"},
        }
    )

    assert (
        options(settings, FOLDER)["spark.archives"]
        == "s3a://b/env.tar.gz#environment,data.zip#data"
    )
    assert python_of_executors(settings, "/here/python") == "./environment/bin/python"
    assert python_of_executors(CLUSTER, "/here/python") == "/here/python"
    assert python_of_executors(with_conf(CLUSTER, **{"spark.pyspark.python": "p"}), "/here") == "p"
    assert python_of_executors(with_conf(HERE, **{"spark.pyspark.python": "p"}), "/here") == "/here"


def test_conf_file_is_read_as_spark_does(tmp_path):
    file = tmp_path / "spark.conf"
    file.write_text(
        "# of the site\n\nspark.executor.memory 2g\nspark.ui.port=4050\n"
        "  spark.executor.cores : 2\nspark.executor.extraJavaOptions -Da=b -Dc=d\nspark.empty\n"
    )

    assert read_conf_file(file) == {
        "spark.executor.memory": "2g",
        "spark.ui.port": "4050",
        "spark.executor.cores": "2",
        "spark.executor.extraJavaOptions": "-Da=b -Dc=d",
        "spark.empty": "",
    }


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("spark.master local", "set MILLSTREAM_SPARK_MASTER"),
        ("spark.driver.memory=2g", "set MILLSTREAM_SPARK_MEMORY_MB"),
        ("spark.speculation true", "sent twice"),
        ("spark.executorEnv.DATABASE_URL postgresql://me:secret@two", "Spark would show it"),
        ("spark.executorEnv.MILLSTREAM_SECRET_KEYS secret", "Spark would show it"),
        ("executor.memory 2g", "expected an option of Spark"),
    ],
)
def test_conf_file_is_refused_by_name(tmp_path, line, reason):
    file = tmp_path / "spark.conf"
    file.write_text(f"spark.ui.port 1\n{line}\n")

    with pytest.raises(ValueError, match=reason) as refused:
        read_conf_file(file)

    assert "line 2" in str(refused.value)
    assert "secret" not in str(refused.value)


def test_options_are_written_for_their_owner_as_java_properties(tmp_path):
    file = tmp_path / "spark.conf"

    write_options(file, {"spark.a": "C:\\x y", "spark.b": " b", "spark.c": "1\n2"})

    assert file.read_text() == "spark.a=C:\\\\x y\nspark.b=\\ b\nspark.c=1\\n2\n"
    assert file.stat().st_mode & 0o777 == 0o600


def test_tasks_carry_what_they_need_and_never_secret_keys():
    settings = TaskSettings(STORES)
    carried = pickle.loads(pickle.dumps(settings)).storage()

    assert carried == STORES.model_copy(update={"secret_keys": ()})
    assert "secret" not in repr(settings)
    copying = TaskSettings(STORES, postgres=False).storage()
    assert (copying.redis_url, copying.database_url) == (STORES.redis_url, "")
    compacting = TaskSettings(STORES, redis=False, postgres=False).storage()
    assert (compacting.redis_url, compacting.archive_url) == ("", STORES.archive_url)


def test_jvm_inherits_no_address_of_a_store(monkeypatch):
    monkeypatch.setenv("REDIS_URL", "redis://:secret@one")
    monkeypatch.setenv("DATABASE_URL", "postgresql://me:secret@two")
    monkeypatch.setenv("MILLSTREAM_SECRET_KEYS", "secret")
    monkeypatch.setenv("MILLSTREAM_FAULT", "toy")
    monkeypatch.setenv("AWS_PROFILE", "mine")

    inherited = HERE.environment_of_spark(Path("/java"), Path("/spark"))

    assert "secret" not in repr(inherited)
    assert (inherited["MILLSTREAM_FAULT"], inherited["AWS_PROFILE"]) == ("toy", "mine")
