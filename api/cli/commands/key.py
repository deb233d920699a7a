"""`millstream key`: who may call, and what they may do."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from api.cli.shell.options import Settings, Yes, duration, fields, now
from api.cli.shell.output import Row, table, to_row
from api.cli.shell.prompts import confirm
from api.cli.shell.terminal import Terminal, noun, parsed_by, verb

key = noun("Keys: who may call, and what they may do.")

KEYS = table(
    "id", "kind", "name", "roles", "everywhere", "expires_at", "last_used_at", "revoked_at"
)
GRANTS = table("effect", "actions", "resources")

KeyId = Annotated[str, typer.Argument(help="The key's id.")]


class RoleWord(StrEnum):
    """Rights by one word."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    PRODUCER = "producer"
    CONSUMER = "consumer"
    ADMIN = "admin"


def parse_grant(text: str) -> tuple[str, str]:
    """Actions, and names of resources. Raises ValueError."""
    actions, _, names = text.strip().partition(" ")
    if not actions:
        raise ValueError("say actions, and names if not all: 'queue:send,queue:list orders-*'")
    return actions, names.strip() or "*"


def _grants(option: str, help: str) -> Any:
    return typer.Option(
        option, parser=parsed_by(parse_grant), metavar="'ACTIONS [NAMES]'", help=help
    )


Name = Annotated[str, typer.Argument(help="Whose it is: any name.")]
Roles = Annotated[list[RoleWord] | None, typer.Option("--role", help="A role; repeat for more.")]
Allow = Annotated[
    list[Any] | None,
    _grants(
        "--allow", "Actions, separated by commas, and the names they are for; repeat for more."
    ),
]
Deny = Annotated[
    list[Any] | None,
    _grants("--deny", "The same, denied; it wins over everything that is allowed."),
]
Expires = Annotated[Any, duration("--expires", help="How long it is valid.")]
Everywhere = Annotated[
    bool, typer.Option("--everywhere", help="For all namespaces, and for managing them.")
]
Local = Annotated[
    bool,
    typer.Option("--local", help="Ask the database directly, for when every key is lost."),
]
Data = Annotated[
    Path | None, typer.Option("--data", help="With --local: the directory of `millstream up`.")
]


@verb(
    key,
    "create",
    examples=[
        "millstream key create shop --role producer --expires 90d",
        "millstream key create billing --allow 'queue:receive,queue:list orders-*'",
    ],
)
def create(
    cli: Terminal,
    name: Name,
    roles: Roles = None,
    allow: Allow = None,
    deny: Deny = None,
    expires: Expires = None,
    everywhere: Everywhere = False,
    local: Local = False,
    data: Data = None,
    set_: Settings = None,
) -> None:
    """Create an API key. It is shown once, alone on its line with -q."""
    made = _create(
        cli, _config(name, "key", roles, allow, deny, expires, everywhere, set_), local, data
    )
    _show_secret(cli, made, f"Key {made['id']} of {name} created. It is not shown again:")


@verb(key, "pair", examples=["millstream key pair shop --role producer"])
def pair(
    cli: Terminal,
    name: Name,
    roles: Roles = None,
    allow: Allow = None,
    deny: Deny = None,
    expires: Expires = None,
    set_: Settings = None,
) -> None:
    """Create a pair that signs calls, for AWS's clients; shown once, as ~/.aws/credentials wants it."""
    made = _create(
        cli, _config(name, "pair", roles, allow, deny, expires, False, set_), False, None
    )
    if not cli.out.for_people:
        cli.out.done("", made)
        return
    cli.say(
        f"Access key pair {made['id']} of {name} created. For ~/.aws/credentials, not shown again:"
    )
    lines = (
        f"[{name}]",
        f"aws_access_key_id = {made['id']}",
        f"aws_secret_access_key = {made['secret']}",
    )
    for line in lines:
        cli.out.line(line.encode())


def _config(
    name: str,
    kind: str,
    roles: list[RoleWord] | None,
    allow: list[Any] | None,
    deny: list[Any] | None,
    expires: float | None,
    everywhere: bool,
    settings: list[Any] | None,
) -> dict[str, Any]:
    effects = {"allow": allow or [], "deny": deny or []}
    grants = [
        {"effect": effect, "actions": actions.split(","), "resources": names.split(",")}
        for effect, said in effects.items()
        for actions, names in said
    ]
    return fields(
        settings,
        name=name,
        kind=kind,
        roles=[role.value for role in roles] if roles else None,
        grants=grants or None,
        expires_at=None
        if expires is None
        else (now() + timedelta(seconds=expires)).isoformat(timespec="milliseconds"),
        everywhere=everywhere or None,
    )


def _create(cli: Terminal, config: dict[str, Any], local: bool, data: Path | None) -> Row:
    if local:
        from api.cli.ops.local_keys import create as create_locally

        return create_locally(config, data)
    from millstream_client.core.api.keys.create_key import create_key
    from millstream_client.core.models.key_config import KeyConfig

    call = create_key(body=KeyConfig(name=config["name"]))
    return to_row(cli.client.call(replace(call, json=config)))


def _show_secret(cli: Terminal, made: Row, sentence: str) -> None:
    """The secret is a result; what is said about it is not."""
    if not cli.out.for_people:
        cli.out.done("", made)
        return
    cli.say(sentence)
    cli.out.line(str(made["secret"]).encode())


@verb(key, "ls", examples=["millstream key ls", "millstream key ls --name shop"])
def list_keys(
    cli: Terminal,
    name: Annotated[str | None, typer.Option("--name", help="Only keys with this name.")] = None,
) -> None:
    """List keys and pairs by name, those too that ended within 90 days."""
    from millstream_client.core.api.keys import list_keys as core
    from millstream_client.core.types import UNSET
    from millstream_client.sync.pages import all_pages

    def ask(cursor: str) -> Any:
        return core.list_keys(name=name or UNSET, cursor=cursor)

    rows: Iterator[Row] = map(to_row, all_pages(cli.client.transport, ask))
    cli.out.rows(rows, KEYS)


@verb(key, "show")
def show(cli: Terminal, key_id: KeyId) -> None:
    """Show a key, and what its holder may do."""
    from millstream_client.core.api.keys.get_key import get_key

    cli.out.show(to_row(cli.client.call(get_key(key_id))), grants=GRANTS)


@verb(key, "rotate")
def rotate(
    cli: Terminal,
    key_id: KeyId,
    overlap: Annotated[
        Any, duration("--overlap", help="How long the old one stays valid.")
    ] = 86_400.0,
) -> None:
    """Make another key of the same name and rights; the old one goes on for a while beside it."""
    from millstream_client.core.api.keys.rotate_key import rotate_key
    from millstream_client.core.models.key_rotation import KeyRotation

    call = rotate_key(key_id, body=KeyRotation(overlap_seconds=overlap))
    made = to_row(cli.client.call(call))
    _show_secret(cli, made, f"Key {made['id']} replaces {key_id}. It is not shown again:")


@verb(key, "revoke")
def revoke(
    cli: Terminal,
    key_ids: Annotated[list[str], typer.Argument(help="The keys' ids.")],
    yes: Yes = False,
) -> None:
    """End keys for good; what they hold open is closed."""
    from millstream_client.core.api.keys.get_key import get_key
    from millstream_client.core.api.keys.revoke_key import revoke_key

    for key_id in key_ids:
        name = to_row(cli.client.call(get_key(key_id)))["name"]
        confirm(cli, f"Key {key_id} of {name} will be revoked for good.", key_id, yes=yes)
        cli.client.call(revoke_key(key_id))
        cli.out.done(f"Key {key_id} of {name} is revoked.", {"id": key_id, "revoked": True})


@verb(key, "whoami", examples=["millstream key whoami"])
def whoami(cli: Terminal) -> None:
    """Show who we are to the service, and what we may do."""
    from millstream_client.core.api.keys import whoami as core

    cli.out.show(to_row(cli.client.call(core.whoami())), grants=GRANTS)
