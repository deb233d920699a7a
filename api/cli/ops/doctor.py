"""Problems of a service and of this machine, for `millstream doctor`.

The machine and the data directory are examined here; the stores by `storage.operations.health`. Where their URLs are not
set, the stores of a running `millstream up` are found by its data directory.
"""

import asyncio
import os
import shutil
import sys
from importlib import metadata
from pathlib import Path
from urllib.parse import unquote, urlsplit

from api.cli.config.profiles import is_on_this_machine
from api.cli.errors import CliError
from api.cli.ops.service_checks import examine_service
from api.cli.shell.output import Column, Output, Row, table, to_row
from api.cli.shell.terminal import Terminal
from api.cli.up.archive_mode import OFF, own_archive
from api.cli.up.data_directory import LAYOUT_VERSIONS
from api.cli.up.listener import listening, open_files_max
from api.cli.up.readiness import readiness
from api.cli.up.running_stores import with_running_stores
from api.config.settings import Settings
from spark_worker.runtime.java import JavaMissing, find_java
from spark_worker.runtime.requirements import NO_SPARK, has_pyspark
from storage.bootstrap import Storage, open_storage
from storage.domain import limits
from storage.domain.access.permissions import LOCAL_ADMINISTRATOR
from storage.domain.clock import SystemClock
from storage.domain.errors import MillstreamError
from storage.embedded.binaries import find_allocator
from storage.operations.diagnostics import Diagnostic
from storage.schema_version import schema_fault

PYTHON_MIN, PYTHON_LAST = (3, 11), (3, 14)
FILES_MIN = 4_096  # a connection is an open file
DISK_FREE_BYTES_MIN = 1 << 30
GIB = 1 << 30
KEY_EXPIRY_WARNING_MS = 14 * limits.DAY_MS

SCHEMA_HINT = (
    "`millstream migrate` or the next `millstream up` migrates an older database; a newer"
    " database requires the version that migrated it."
)

MARKS = {True: "✓", False: "✗", None: "!"}
FINDINGS = table(
    "check", Column("mark", " "), Column("detail", "found"), Column("advice", "what to do", str)
)
OVERCOMMIT = Path("/proc/sys/vm/overcommit_memory")
HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled")


def examine(settings: Settings) -> list[Diagnostic]:
    """Return the findings about a deployment on this machine."""
    return [
        *examine_client(),
        *_machine(settings),
        _port(settings),
        _callers(settings),
        *_archive(settings),
        *_stores(settings),
    ]


def examine_with_url(cli: Terminal, settings: Settings) -> list[Diagnostic]:
    """Return the findings about the service; then about this machine, if it runs here."""
    findings = [*examine_service(cli), *examine_client()]
    if is_on_this_machine(cli.target.url.value):
        has_stores = with_running_stores(settings) is not None
        findings += [*_machine(settings), *(_stores(settings) if has_stores else ())]
    return findings


def examine_client() -> list[Diagnostic]:
    """Return the findings about the program that runs this."""
    return [_version(), _python()]


def _machine(settings: Settings) -> list[Diagnostic]:
    return [
        _open_files(),
        *_kernel(),
        *_allocator(settings),
        _disk(settings.data),
        _data_version(settings.data),
    ]


def show(out: Output, findings: list[Diagnostic]) -> None:
    """Print the findings."""
    rows = map(to_row, findings)
    out.rows(map(_for_people, rows) if out.for_people else rows, FINDINGS)


def _for_people(row: Row) -> Row:
    advice = "" if row["ok"] is True else row["hint"]
    return {**row, "mark": MARKS[row["ok"]], "advice": advice}


def _version() -> Diagnostic:
    return Diagnostic("millstream", True, metadata.version("millstream"), "")


def _kernel() -> list[Diagnostic]:
    """Check the kernel settings that Valkey and Redis need; nothing if they are not readable."""
    findings = []
    if (overcommit := _kernel_setting(OVERCOMMIT)) is not None:
        value = f"vm.overcommit_memory is {overcommit}"
        hint = (
            "On the store's machine, run sysctl vm.overcommit_memory=1; otherwise "
            "rewriting the append-only file can fail."
        )
        findings.append(Diagnostic("overcommit", True if overcommit == "1" else None, value, hint))
    if (huge := _kernel_setting(HUGE_PAGES)) is not None:
        hint = f"On the store's machine, run echo madvise > {HUGE_PAGES}; otherwise the store pauses when it forks."
        findings.append(Diagnostic("huge pages", None if "[always]" in huge else True, huge, hint))
    return findings


def _allocator(settings: Settings) -> list[Diagnostic]:
    """Check the bundled Valkey's memory allocator, where it is the store."""
    if settings.redis_url is not None or settings.server != "bundled" or sys.platform != "linux":
        return []
    library = find_allocator()
    name = "the C library's" if library is None else str(library)
    hint = (
        "Install jemalloc (apt-get install libjemalloc2): the bundled Valkey uses it and is faster."
    )
    return [Diagnostic("allocator", None if library is None else True, name, hint)]


def _kernel_setting(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except OSError:  # not available in this kernel, or not readable by us
        return None


def _python() -> Diagnostic:
    return Diagnostic(
        "python",
        PYTHON_MIN <= sys.version_info[:2] <= PYTHON_LAST,
        ".".join(map(str, sys.version_info[:3])),
        "Use Python 3.11 to 3.14.",
    )


def _open_files() -> Diagnostic:
    """Check the limit to which the service raises its own."""
    files = open_files_max()
    hint = f"Raise the hard limit: ulimit -Hn {FILES_MIN} or more."
    return Diagnostic("open files", files >= FILES_MIN, f"up to {files}", hint)


def _disk(data: Path) -> Diagnostic:
    directory = next(path for path in (data.resolve(), *data.resolve().parents) if path.exists())
    free = shutil.disk_usage(directory).free
    return Diagnostic(
        "disk",
        free >= DISK_FREE_BYTES_MIN,
        f"{free / GIB:.1f} GiB free at {directory}",
        "Free disk space: on a full disk every write fails.",
    )


def _data_version(data: Path) -> Diagnostic:
    path = data / "version"
    if not path.exists():
        return Diagnostic("data", True, f"{data} does not exist yet", "")
    version = path.read_text().strip()
    return Diagnostic(
        "data",
        version in map(str, LAYOUT_VERSIONS),
        f"{data} has layout version {version}",
        f"This version of Millstream reads layouts {LAYOUT_VERSIONS[0]} and {LAYOUT_VERSIONS[1]}: use the version that wrote it.",
    )


def _port(settings: Settings) -> Diagnostic:
    where = f"{settings.host}:{settings.port}"
    try:
        with listening(settings.host, settings.port):
            return Diagnostic("port", True, f"{where} is free", "")
    except CliError as trouble:
        reason = readiness(f"{settings.scheme}://{where}")
        if reason == "":
            return Diagnostic("port", True, f"Millstream is ready on {where}", "")
        return Diagnostic("port", False, f"{trouble}; {reason}", "Choose another port with --port.")


def _callers(settings: Settings) -> Diagnostic:
    """Check that callers who can reach the service must authenticate."""
    if settings.wants_credentials:
        return Diagnostic("callers", True, f"{settings.host} requires keys", "")
    if not settings.listens_beyond_loopback:
        return Diagnostic(
            "callers", True, f"{settings.host} is a loopback address and requires no keys", ""
        )
    return Diagnostic(
        "callers",
        None if settings.insecure else False,
        f"{settings.host} is reachable from other machines without authentication",
        "Unset MILLSTREAM_INSECURE to require keys (`millstream key create`).",
    )


def _archive(settings: Settings) -> list[Diagnostic]:
    """Check the archive's location, and whether a worker can run on this machine."""
    if settings.archive_url == OFF:
        return [Diagnostic("archive", True, "disabled by MILLSTREAM_ARCHIVE_URL", "")]
    return [
        _spark(),
        _archive_location(settings.archive_url or own_archive(settings.data.resolve())),
    ]


def _spark() -> Diagnostic:
    if not has_pyspark():
        return Diagnostic("spark", None, NO_SPARK, "Without it, no worker can run here.")
    try:
        java = find_java()
    except JavaMissing as missing:
        return Diagnostic("spark", False, str(missing), "Without Java, no worker can run here.")
    return Diagnostic("spark", True, f"Java {java.version} at {java.home}", "")


def _archive_location(url: str) -> Diagnostic:
    split = urlsplit(url)
    if split.scheme != "file":
        where = f"{split.scheme}://{split.hostname}{split.path}"  # a URL may hold a secret
        return Diagnostic("archive", True, where, "")
    folder = Path(unquote(split.path))
    directory = next(path for path in (folder, *folder.parents) if path.exists())
    return Diagnostic(
        "archive",
        directory.is_dir() and os.access(directory, os.W_OK | os.X_OK),
        f"{folder}" if directory == folder else f"{folder}, will be created in {directory}",
        f"The data directory must be writable by this user: {directory} is not.",
    )


def _stores(settings: Settings) -> list[Diagnostic]:
    running_settings = with_running_stores(settings)
    if running_settings is None:
        return [Diagnostic("stores", None, "not running", "Start `millstream up` and try again.")]
    try:
        if fault := schema_fault(running_settings.storage()):
            return [Diagnostic("migrations", False, fault, SCHEMA_HINT)]
        return asyncio.run(_diagnose(running_settings))
    except MillstreamError as error:
        return [
            Diagnostic(
                "stores",
                False,
                error.detail,
                "Check that it is running and that its URL is correct.",
            )
        ]


async def _diagnose(settings: Settings) -> list[Diagnostic]:
    async with open_storage(settings.storage()) as storage:
        findings = await storage.health.diagnose()
        return [*findings, *await _administrators(settings, storage)]


async def _administrators(settings: Settings, storage: Storage) -> list[Diagnostic]:
    """Check that someone can manage keys, where keys are required."""
    if not settings.wants_credentials:
        return []
    issued, _ = await storage.credentials.page(LOCAL_ADMINISTRATOR, limit=limits.PAGE_ITEMS_MAX)
    now_ms = SystemClock().now_ms()
    live = [
        credential
        for credential in issued
        if credential.all_namespaces and credential.is_live(now_ms)
    ]
    ends = [credential.rights.expires_at_ms for credential in live]
    lasting = [end for end in ends if end is None or end > now_ms + KEY_EXPIRY_WARNING_MS]
    return [
        Diagnostic(
            "keys",
            True if lasting else None,
            f"{len(live)} active keys of administrators of all namespaces, {len(live) - len(lasting)} expire within two weeks",
            "millstream key create NAME --role admin --everywhere --local",
        )
    ]
