"""Wheels of the service, the SDK and the Spark source, each in an environment that has only its dependencies."""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZipFile

import pytest

from tests.acceptance.deployment import Deployment, deployed

ROOT = Path(__file__).parents[2]
PACKAGES = {
    "millstream": ROOT,
    "millstream_client": ROOT / "openapi" / "sdk" / "python",
    "pyspark_millstream": ROOT / "pyspark_millstream",
}
NOBODY = "nobody"
TRIAL = """
from millstream_client import Millstream
with Millstream() as client:
    queue = client.queue("from-wheel")
    queue.create()
    queue.send({"order": 7})
    print([message.json() for message in queue.messages(until_empty=True, wait_seconds=1)])
"""


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """A folder outside of the clone that every user may enter."""
    with TemporaryDirectory(prefix="ms-wheels-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.fixture(scope="module")
def wheels(place: Path) -> dict[str, Path]:
    """The built wheels by name."""
    for project in PACKAGES.values():
        build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d"]
        subprocess.run([*build, place / "dist"], cwd=project, check=True, capture_output=True)
    return {wheel.name.partition("-")[0]: wheel for wheel in (place / "dist").glob("*.whl")}


def environment(place: Path, wheel: Path) -> Path:
    """Install a wheel into a new environment, and return that.

    The dependencies are those of the tests, without this project, which is there by a .pth file that is not read again.
    """
    folder = place / f"env-{wheel.name.partition('-')[0]}"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    [packages] = folder.glob("lib/python*/site-packages")
    [ours] = [path for path in sys.path if path.endswith("site-packages")]
    (packages / "shared.pth").write_text(f"{ours}\n")
    install = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--offline", "--no-deps"]
    subprocess.run([*install, "--python", folder / "bin" / "python", wheel], check=True)
    return folder


@pytest.fixture(scope="module")
def service(place: Path, wheels: dict[str, Path]) -> Path:
    """The environment of the service."""
    return environment(place, wheels["millstream"])


def clean_environment(**variables: str) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "TMPDIR") if name in os.environ}
    return kept | variables


def run(
    command: Sequence[str | Path], folder: Path, **variables: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env=clean_environment(**variables),
    )


@pytest.fixture(scope="module")
def millstream(place: Path, service: Path) -> Iterator[Deployment]:
    """`millstream up` of the wheel, in an empty folder."""
    (place / "empty").mkdir()
    variables = {"MILLSTREAM_SPARK": "off"}
    with deployed(
        place / "log",
        program=[str(service / "bin" / "millstream")],
        folder=place / "empty",
        environment=variables,
    ) as deployment:
        yield deployment


def test_wheels_have_one_version_and_their_packages_only(wheels):
    versions = {wheel.name.split("-")[1] for wheel in wheels.values()}
    packages = {name: {path.split("/")[0] for path in names(wheels[name])} for name in wheels}

    assert len(versions) == 1
    assert packages == {
        "millstream": {"api", "consumers", "spark_worker", "storage", *list(PACKAGES)[1:]},
        "millstream_client": {"millstream_client"},
        "pyspark_millstream": {"pyspark_millstream"},
    }


def names(wheel: Path) -> set[str]:
    with ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if ".dist-info/" not in name}


def test_service_of_wheel_starts_in_empty_folder(millstream, place, service):
    command = [service / "bin" / "millstream", "queue"]

    created = run([*command, "create", "orders"], place, MILLSTREAM_URL=millstream.url)
    sent = run([*command, "send", "orders", "hello"], place, MILLSTREAM_URL=millstream.url)
    received = run([*command, "receive", "orders"], place, MILLSTREAM_URL=millstream.url)

    assert [done.returncode for done in (created, sent, received)] == [0, 0, 0], sent.stderr
    assert "hello" in received.stdout
    assert [path.name for path in (place / "empty").iterdir()] == [".millstream"]


def test_service_of_wheel_loads_nothing_of_the_clone(place, service):
    script = (
        "import api, storage, millstream_client; print(api.__file__, millstream_client.__file__)"
    )

    done = run([service / "bin" / "python", "-c", script], place)

    assert all(path.startswith(str(service)) for path in done.stdout.split()), done.stderr


def test_service_of_wheel_runs_as_ordinary_user(place, service):
    home = place / "home"
    home.mkdir(mode=0o777)
    home.chmod(0o777)
    python = str(service / "bin" / "python")
    if os.geteuid() != 0:
        pytest.skip("the other tests run as an ordinary user already")
    if run(["setpriv", *SETPRIV, python, "-c", CHILD], home).returncode != 0:
        pytest.skip("an ordinary user cannot reach this Python")

    program = ["setpriv", *SETPRIV, str(service / "bin" / "millstream")]
    with deployed(
        place / "log-nobody",
        program=program,
        folder=home,
        environment={"MILLSTREAM_SPARK": "off", "HOME": str(home)},
    ) as deployment:
        assert deployment.url.startswith("http://127.0.0.1:")

    assert (home / ".millstream").stat().st_uid != 0


CHILD = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'pass'], check=True)"
SETPRIV = ["--reuid", NOBODY, "--regid", "nogroup", "--clear-groups"]


def test_sdk_of_wheel_talks_to_service(millstream, place, wheels):
    python = environment(place, wheels["millstream_client"]) / "bin" / "python"

    done = run([python, "-c", TRIAL], place, MILLSTREAM_URL=millstream.url)

    assert done.stdout == "[{'order': 7}]\n", done.stderr
    assert run([python, "-c", "import api"], place).returncode != 0


def test_spark_source_of_wheel_is_found(place, wheels):
    python = environment(place, wheels["pyspark_millstream"]) / "bin" / "python"
    script = "import pyspark_millstream; print(pyspark_millstream.DefaultSource.name())"

    done = run([python, "-c", script], place)

    assert done.stdout == "millstream\n", done.stderr
    assert run([python, "-c", "import millstream_client"], place).returncode != 0
