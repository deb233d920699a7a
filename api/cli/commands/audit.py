"""`millstream audit`: audit entries, and verification of the log."""

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Annotated, Any

import typer

from api.cli.config.process_settings import settings_from_cli, with_stores
from api.cli.errors import CliError
from api.cli.grammar.common_options import parsed_by
from api.cli.shell.options import Limit, moment, option
from api.cli.shell.output import Row, table
from api.cli.shell.terminal import Terminal, noun, verb
from storage.domain import limits
from storage.domain.access.audit import AuditFault, AuditFilter, Chain

audit = noun()

ENTRIES = table("seq", "called_at", "principal", "address", "operation", "resource", "outcome")

QueryParameters = Mapping[str, Any]


def parse_entry(text: str) -> tuple[int, str]:
    """Parse SEQ:HASH, as printed by `verify`. Raises ValueError."""
    seq, _, digest = text.partition(":")
    if not (seq.isascii() and seq.isdigit() and len(digest) == 64):
        raise ValueError(f"{text!r} is not an entry: use SEQ:HASH")
    return int(seq), digest


@verb(
    audit,
    "ls",
    examples=[
        "millstream audit ls",
        "millstream audit ls --resource queues/orders --since 1d",
        "millstream audit ls --operation 'delete*'",
        "millstream audit ls -o ndjson --limit 100000",
    ],
)
def list_entries(
    cli: Terminal,
    principal: Annotated[
        str | None, option("--principal", "Only calls by this principal.", "NAME")
    ] = None,
    action: Annotated[
        str | None, option("--action", "Only calls that require this permission.", "ACTION")
    ] = None,
    operation: Annotated[
        str | None,
        option(
            "--operation",
            "Only this operation, such as delete_queue, or delete* for several.",
            "OPERATION",
        ),
    ] = None,
    resource: Annotated[
        str | None, option("--resource", "Only this resource and everything below it.", "PATH")
    ] = None,
    namespace: Annotated[
        str | None,
        option("--of", "Only this namespace (for administrators of all namespaces).", "NAME"),
    ] = None,
    since: Annotated[Any, moment("--since", help="Only calls at or after this time.")] = None,
    until: Annotated[Any, moment("--until", help="Only calls before this time.")] = None,
    limit: Limit = 50,
) -> None:
    """List audit entries, newest first."""
    options = {
        "principal": principal,
        "action": action,
        "operation": operation,
        "resource": resource,
        "namespace": namespace,
        "from": since.isoformat() if since else None,
        "to": until.isoformat() if until else None,
    }
    params = {name: value for name, value in options.items() if value is not None}
    entries = (entry for page in _pages(cli, params) for entry in page["items"])
    cli.out.rows(islice(entries, limit), ENTRIES)


@verb(
    audit,
    "verify",
    examples=["millstream audit verify"],
)
def verify(
    cli: Terminal,
    local: Annotated[
        bool, option("--local", "Read the database at DATABASE_URL directly.")
    ] = False,
    recorded: Annotated[
        Any,
        typer.Option(
            "--known",
            parser=parsed_by(parse_entry),
            metavar="SEQ:HASH",
            help="An entry printed by an earlier run, which must still exist.",
        ),
    ] = None,
) -> None:
    """Verify the hash chain of the audit log. Fails at the first altered entry.

    Someone with write access to the database can rewrite the whole log: store the last entry elsewhere, and pass it
    with --known.
    """
    if local:
        chain, fault = asyncio.run(_verify_local(recorded))
    else:
        chain, fault = _verify(cli, recorded)
    if fault := fault or chain.end():
        raise CliError(f"audit log verification failed: entry {fault.seq} {fault.detail}")
    summary = {
        "entries": chain.seq,
        "last": f"{chain.seq}:{chain.hash}",
        "complete": chain.whole,
        "whole": chain.whole,
    }
    cli.out.done(_sentence(chain), summary)


def _sentence(chain: Chain) -> str:
    if not chain.whole:
        return "The visible audit entries are verified; a caller with access to all entries can verify the rest."
    return f"Audit log verified. Last entry: {chain.seq}:{chain.hash}"


def _verify(cli: Terminal, recorded: tuple[int, str] | None) -> tuple[Chain, AuditFault | None]:
    chain: Chain | None = None
    for page in _pages(cli, {"order": "oldest"}):
        chain = chain or Chain(whole=page["complete"], recorded=recorded)
        if fault := chain.check(page["items"]):
            return chain, fault
    assert chain is not None, "there is a first page"
    return chain, None


def _pages(cli: Terminal, query: QueryParameters) -> Iterator[Row]:
    """Yield pages as received, since the hash covers the received form."""
    from millstream_client.core.api.audit.list_audit_entries import list_audit_entries

    call, cursor = list_audit_entries(), ""
    while cursor is not None:
        params = {**query, "limit": limits.PAGE_ITEMS_MAX, "cursor": cursor}
        page: Row = cli.client.call(replace(call, params=params, read=_as_sent))  # type: ignore[arg-type]
        yield page
        cursor = page["next_cursor"]


def _as_sent(answer: Any) -> Any:
    return answer.json()


async def _verify_local(recorded: tuple[int, str] | None) -> tuple[Chain, AuditFault | None]:
    from storage.bootstrap import open_storage

    chain = Chain(whole=True, recorded=recorded)
    async with open_storage(with_stores(settings_from_cli()).storage()) as storage:
        while entries := await storage.audit_log.page(
            AuditFilter(), after=chain.seq, limit=limits.PAGE_ITEMS_MAX, oldest_first=True
        ):
            if fault := chain.check(entry.fields() for entry in entries):
                return chain, fault
    return chain, None
