"""Checks of a service by its URL, for `millstream doctor`."""

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from importlib import metadata
from itertools import islice
from typing import TYPE_CHECKING, Any

from api.cli.config.profiles import is_on_this_machine
from api.cli.descriptions.problems import view_failures
from api.cli.shell.clock import now
from api.cli.shell.output import Row
from api.cli.shell.terminal import Terminal
from millstream_client.errors import Forbidden, MillstreamError, Refused, Unauthenticated
from storage.domain import limits
from storage.operations.diagnostics import Diagnostic

if TYPE_CHECKING:
    import httpx

    from millstream_client import JobOut

ANSWER_S = 10.0
UNREACHABLE = (
    "Check the address, and that the service runs; `millstream profile ls` lists profiles."
)
UNTRUSTED = "Renew the certificate, or specify the CA that signed it with --ca-file."
CLOCK_SKEW_S_MAX = 60.0  # signatures of AWS clients are rejected after 15 minutes
CERTIFICATE_WARNING = KEY_WARNING = timedelta(days=14)
REQUIRED_ROLES = {
    "sweeper": "Without it, nothing expires and nothing is tidied: run `millstream sweep`.",
    "deliverer": "Without it, webhooks are not delivered: run `millstream deliver`.",
    "worker": "Without it, streams are not archived or replayed: run `millstream worker`.",
}
MIRRORS_MAX = VIEWS_MAX = 100  # that are looked at
JOBS_MAX = 100  # queued jobs that are looked at
RUNNING = frozenset({"sweeper"})  # roles without which a service does not work


def examine_service(cli: Terminal) -> Iterator[Diagnostic]:
    """Yield the findings about the service that the command line calls."""
    import httpx

    options = cli.client.transport.options
    try:
        with (
            httpx.Client(verify=options.trust(), timeout=ANSWER_S) as http,
            http.stream("GET", f"{options.url}/readyz") as answer,
        ):
            certificate = _certificate(answer)
            answer.read()
    except (httpx.TransportError, OSError) as error:
        yield _unreachable(options.url, str(error))
        return
    yield from _readiness(options.url, answer)
    yield _encryption(options.url, certificate)
    yield _clock(answer)
    yield from _checked("key", lambda: [_key(cli.call("keys.whoami"))])
    yield from _checked(
        "processes", lambda: _processes(cli.call("processes.list_processes")["items"])
    )
    yield from _checked(
        "jobs", lambda: [_jobs(list(islice(cli.client.jobs(state="queued"), JOBS_MAX)))]
    )
    yield from _checked("mirrors", lambda: _mirrors(_copying_mirrors(cli)))
    yield from _checked("views", lambda: _views(_running_views(cli)))


def _unreachable(url: str, reason: str) -> Diagnostic:
    is_untrusted = "CERTIFICATE_VERIFY_FAILED" in reason
    hint = UNTRUSTED if is_untrusted else UNREACHABLE
    return Diagnostic("service", False, f"no response from {url}: {reason}", hint)


def _checked(check: str, examine: Callable[[], list[Diagnostic]]) -> list[Diagnostic]:
    """Return the findings of a call; its rejection is a finding too."""
    try:
        return examine()
    except Unauthenticated as error:
        hint = "Specify a key with --api-key, MILLSTREAM_API_KEY, or `millstream login`."
        return [Diagnostic(check, False, error.detail, hint)]
    except Forbidden as error:
        return [Diagnostic(check, None, error.detail, "Use a key that has this permission.")]
    except MillstreamError as error:
        detail = error.detail if isinstance(error, Refused) else str(error)
        return [Diagnostic(check, False, detail, "See the log of the service.")]


# ── Without credentials ──


def _readiness(url: str, answer: "httpx.Response") -> Iterator[Diagnostic]:
    """Yield a finding for the service, and for each of its stores that fails."""
    try:
        checks: dict[str, str] = answer.json()["checks"]
    except (ValueError, KeyError, TypeError):
        hint = "Specify the address of a Millstream service with --url."
        detail = f"{url} answered {answer.status_code}, and is not Millstream"
        yield Diagnostic("service", False, detail, hint)
        return
    milliseconds = answer.elapsed.total_seconds() * 1_000
    failing = [name for name, result in checks.items() if result != "ok"]
    is_ready = answer.is_success
    detail = f"{url} is {'ready' if is_ready else 'not ready'}; answered in {milliseconds:.0f} ms"
    yield Diagnostic("service", is_ready, detail, "See the checks below.")
    for name in failing:
        is_ok = None if is_ready else False
        yield Diagnostic(name, is_ok, checks[name], "Check that it is running and reachable.")


def _certificate(answer: "httpx.Response") -> dict[str, Any] | None:
    """Return the service's certificate; None for plain HTTP."""
    connection = answer.extensions["network_stream"].get_extra_info("ssl_object")
    return connection.getpeercert() if connection else None


def _encryption(url: str, certificate: dict[str, Any] | None) -> Diagnostic:
    """Check that traffic is encrypted, and for how long the certificate is valid."""
    if certificate is None:
        is_local = is_on_this_machine(url)
        detail = "not encrypted" + (", on a loopback address" if is_local else "")
        hint = "Keys and messages cross the network in the clear: use https (docs/how-to/tls.md)."
        return Diagnostic("tls", True if is_local else None, detail, hint)
    ends = datetime.strptime(certificate["notAfter"], "%b %d %H:%M:%S %Y %Z").replace(tzinfo=UTC)
    is_lasting = ends - now() > CERTIFICATE_WARNING
    detail = f"the certificate is valid until {ends:%Y-%m-%d}"
    return Diagnostic("tls", True if is_lasting else None, detail, "Renew the certificate.")


def _clock(answer: "httpx.Response") -> Diagnostic:
    """Compare the service's clock with this machine's; the header has seconds."""
    try:
        skew = abs((parsedate_to_datetime(answer.headers["date"]) - now()).total_seconds())
    except (KeyError, ValueError, TypeError):
        return Diagnostic("service clock", None, "the response has no date", "A proxy removed it.")
    detail = f"{skew:.0f} s from this machine's"
    return Diagnostic(
        "service clock", skew <= CLOCK_SKEW_S_MAX, detail, "Run an NTP client on both."
    )


# ── With the caller's key ──


def _key(identity: Row) -> Diagnostic:
    """Describe the caller's permissions, and check that its key does not expire soon."""
    actions = sorted({action for grant in identity["grants"] for action in grant["actions"]})
    expires_at = identity["expires_at"]
    is_lasting = expires_at is None or datetime.fromisoformat(expires_at) - now() > KEY_WARNING
    until = f", until {expires_at}" if expires_at else ""
    scope = "all namespaces" if identity["all_namespaces"] else identity["namespace"]
    detail = f"{identity['name']} in {scope}{until}: {', '.join(actions) or 'no permissions'}"
    return Diagnostic("key", True if is_lasting else None, detail, "Run `millstream key rotate`.")


def _jobs(queued: "list[JobOut]") -> Diagnostic:
    """Check that no job waits for a Spark cluster that cannot run it."""
    waiting = [job for job in queued if job.waiting_for == "executors"]
    if not waiting:
        return Diagnostic("jobs", True, f"{len(queued)} queued")
    hint = "See docs/how-to/spark-cluster.md and the log of the worker."
    detail = f"{len(waiting)} wait for executors of the Spark cluster: {waiting[0].failure}"
    return Diagnostic("jobs", False, detail, hint)


def _copying_mirrors(cli: Terminal) -> dict[str, Row]:
    """Return the statistics of the mirrors that should copy, by name."""
    mirrors = islice(cli.pages("mirrors.list_mirrors"), MIRRORS_MAX)
    copying = [one["name"] for one in mirrors if not one["paused"] and not one["promoted_at"]]
    return {name: cli.call("mirrors.get_mirror_stats", name) for name in copying}


def _mirrors(stats: dict[str, Row]) -> list[Diagnostic]:
    """Check that mirrors copy, and are not far behind their origin."""
    failing = [
        Diagnostic(
            f"mirror {name}",
            False if one["failures"] else None,
            "; ".join([f"{one['lag_seconds']:.0f} s behind its origin", *one["failures"]]),
            "See `millstream mirror lag` and docs/how-to/mirrors.md.",
        )
        for name, one in stats.items()
        if one["failures"] or one["lag_seconds"] * limits.SECOND_MS >= limits.MIRROR_ALERT_LAG_MS
    ]
    copying = [Diagnostic("mirrors", True, f"{len(stats)} copy")] if stats else []
    return failing or copying


def _running_views(cli: Terminal) -> list[Row]:
    """Return the views that are not paused, with their state."""
    views = islice(cli.pages("views.list_views"), VIEWS_MAX)
    return [cli.call("views.get_view", one["name"]) for one in views if not one["paused"]]


def _views(views: list[Row]) -> list[Diagnostic]:
    """Check that views get batches, and that their sinks accept changes."""
    failing = [
        Diagnostic(
            f"view {one['name']}",
            False if one["stopped"] else None,
            problem,
            f"See `millstream view show {one['name']}` and docs/how-to/views.md.",
        )
        for one in views
        for problem in view_failures(one)
    ]
    running = [Diagnostic("views", True, f"{len(views)} running")] if views else []
    return failing or running


def _processes(processes: list[Row]) -> list[Diagnostic]:
    """Check the processes: their versions and roles, and what they cannot serve."""
    roles = Counter(str(process["role"]) for process in processes)
    missing = [
        Diagnostic(role, False if role in RUNNING else None, "not running", hint)
        for role, hint in REQUIRED_ROLES.items()
        if not roles[role]
    ]
    detail = ", ".join(f"{count} {role}" for role, count in sorted(roles.items()))
    running = Diagnostic("processes", True, detail or "none")
    return [_versions(processes), running, *missing, *_failing(processes)]


def _versions(processes: list[Row]) -> Diagnostic:
    """Compare the versions of the processes with one another and with the command line's."""
    own = metadata.version("millstream")
    versions = sorted({str(process["version"]) for process in processes})
    detail = f"service {', '.join(versions)}; command line {own}"
    hint = "Finish the upgrade, and use the command line of the service's version."
    return Diagnostic("version", True if versions == [own] else None, detail, hint)


def _failing(processes: list[Row]) -> list[Diagnostic]:
    """Return a finding for each object that a process cannot serve."""
    hint = "It is retried; see `millstream process ls -o json` and the log of the process."
    return [
        Diagnostic(str(failure["task"]), None, f"{failure['object']}: {failure['reason']}", hint)
        for process in processes
        for failure in process["failing"]
    ]
