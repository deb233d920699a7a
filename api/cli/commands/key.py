"""`millstream key`: API keys, access key pairs and permissions."""

from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from api.cli.grammar.common_options import parsed_by
from api.cli.shell.clock import now
from api.cli.shell.definitions import with_options
from api.cli.shell.operations import JsonBody, operation
from api.cli.shell.options import Settings, Yes, duration, fields, option
from api.cli.shell.output import Row, table
from api.cli.shell.prompts import confirm
from api.cli.shell.terminal import Terminal, noun, verb

key = noun()

KEYS = table(
    "id", "kind", "name", "roles", "all_namespaces", "expires_at", "last_used_at", "revoked_at"
)
GRANTS = table("effect", "actions", "resources")

KeyId = Annotated[str, typer.Argument(help="Key id.")]
Overlap = Annotated[Any, duration("--overlap", help="Time that the old key stays valid.")]


class RoleOption(StrEnum):
    """Role."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    PRODUCER = "producer"
    CONSUMER = "consumer"
    ADMIN = "admin"


def parse_grant(text: str) -> tuple[str, str]:
    """Parse actions and resource names. Raises ValueError."""
    actions, _, names = text.strip().partition(" ")
    if not actions:
        raise ValueError("expected actions and optionally names: 'queue:send,queue:list orders-*'")
    return actions, names.strip() or "*"


def _grants(option: str, help: str) -> Any:
    return typer.Option(
        option, parser=parsed_by(parse_grant), metavar="'ACTIONS [NAMES]'", help=help
    )


Name = Annotated[str, typer.Argument(help="Name of the principal.")]
Roles = Annotated[list[RoleOption] | None, option("--role", "A role; repeat for more.")]
Allow = Annotated[
    list[Any] | None,
    _grants(
        "--allow", "Comma-separated actions and the resource names they apply to; repeat for more."
    ),
]
Deny = Annotated[
    list[Any] | None,
    _grants("--deny", "Actions to deny, in the same form; overrides every allow."),
]
Expires = Annotated[Any, duration("--expires", help="Validity period.")]
Everywhere = Annotated[
    bool, option("--everywhere", "Grant access to all namespaces, including their management.")
]
Local = Annotated[
    bool, option("--local", "Access the database directly, for use when all keys are lost.")
]
Data = Annotated[
    Path | None, option("--data", "With --local: the data directory of `millstream up`.")
]


def _identity(
    name: Name,
    roles: Roles = None,
    allow: Allow = None,
    deny: Deny = None,
    expires: Expires = None,
) -> Row:
    effects = {"allow": allow or [], "deny": deny or []}
    grants = [
        {"effect": effect, "actions": actions.split(","), "resources": names.split(",")}
        for effect, pairs in effects.items()
        for actions, names in pairs
    ]
    return fields(
        None,
        name=name,
        roles=[role.value for role in roles] if roles else None,
        grants=grants or None,
        expires_at=None
        if expires is None
        else (now() + timedelta(seconds=expires)).isoformat(timespec="milliseconds"),
    )


@verb(
    key,
    "create",
    examples=[
        "millstream key create shop --role producer --expires 90d",
        "millstream key create billing --allow 'queue:receive,queue:list orders-*'",
    ],
)
@with_options(_identity)
def create(
    cli: Terminal,
    identity: Row,
    everywhere: Everywhere = False,
    local: Local = False,
    data: Data = None,
    set_: Settings = None,
) -> None:
    """Create an API key. It is printed once; with -q, alone on its line."""
    config = fields(set_, kind="key", all_namespaces=everywhere or None)
    made = _create(cli, identity | config, local, data)
    name = identity["name"]
    _show_secret(cli, made, f"Key {made['id']} of {name} created. It is not shown again:")


@verb(key, "pair", examples=["millstream key pair shop --role producer"])
@with_options(_identity)
def pair(cli: Terminal, identity: Row, set_: Settings = None) -> None:
    """Create an access key pair for AWS clients. It is printed once, for ~/.aws/credentials."""
    made = _create(cli, identity | fields(set_, kind="access_key"), False, None)
    name = identity["name"]
    if not cli.out.for_people:
        cli.out.done("", made)
        return
    cli.print_notice(
        f"Access key pair {made['id']} of {name} created. For ~/.aws/credentials, not shown again:"
    )
    lines = (
        f"[{name}]",
        f"aws_access_key_id = {made['id']}",
        f"aws_secret_access_key = {made['secret']}",
    )
    for line in lines:
        cli.out.line(line.encode())


def _create(cli: Terminal, config: dict[str, Any], local: bool, data: Path | None) -> Row:
    if local:
        from api.cli.ops.local_keys import create as create_locally

        return create_locally(config, data)
    return cli.call("keys.create_key", body=JsonBody(config))


def _show_secret(cli: Terminal, made: Row, sentence: str) -> None:
    """Print the secret as the result, and the text about it on standard error."""
    if not cli.out.for_people:
        cli.out.done("", made)
        return
    cli.print_notice(sentence)
    cli.out.line(str(made["secret"]).encode())


@verb(key, "ls", examples=["millstream key ls", "millstream key ls --name shop"])
def list_keys(
    cli: Terminal,
    name: Annotated[str | None, option("--name", "Only keys with this name.", "NAME")] = None,
) -> None:
    """List keys and access key pairs by name.

    Includes those that ended in the last 90 days.
    """
    cli.out.rows(cli.pages("keys.list_keys", name=name or None), KEYS)


@verb(key, "show")
def show(cli: Terminal, key_id: KeyId) -> None:
    """Show a key and its permissions."""

    cli.out.show(cli.call("keys.get_key", key_id), grants=GRANTS)


@verb(key, "rotate")
def rotate(cli: Terminal, key_id: KeyId, overlap: Overlap = 86_400.0) -> None:
    """Replace a key.

    The new key has the same permissions. The old key stays valid for the overlap.
    """
    body = JsonBody(overlap_seconds=overlap)
    made = cli.call("keys.rotate_key", key_id, body=body)
    _show_secret(cli, made, f"Key {made['id']} replaces {key_id}. It is not shown again:")


@verb(key, "revoke")
def revoke(
    cli: Terminal, key_ids: Annotated[list[str], typer.Argument(help="Key ids.")], yes: Yes = False
) -> None:
    """Revoke keys and close their connections.

    This is permanent.
    """

    for key_id in key_ids:
        name = cli.call("keys.get_key", key_id)["name"]
        confirm(cli, f"Key {key_id} of {name} will be permanently revoked.", key_id, yes=yes)
        cli.client.call(operation("keys.revoke_key", key_id))
        cli.out.done(f"Revoked key {key_id} of {name}.", {"id": key_id, "revoked": True})


@verb(key, "whoami", examples=["millstream key whoami"])
def whoami(cli: Terminal) -> None:
    """Show the caller's identity and permissions."""

    cli.out.show(cli.call("keys.whoami"), grants=GRANTS)
