"""Members of a spread as options have them and tables show them: `queue:worker-1=2`."""

from typing import Any

from api.cli.shell.output import Row

KINDS = ("queue", "stream", "topic")


def parse_member(text: str) -> Row:
    """Parse `KIND:NAME` or `KIND:NAME=WEIGHT`. Raises ValueError."""
    target, equals, weight = text.partition("=")
    kind, _, name = target.partition(":")
    if kind not in KINDS or not name or (equals and not weight.isdecimal()):
        example = "use queue:NAME, stream:NAME or topic:NAME, with =WEIGHT if it is not 1"
        raise ValueError(f"{text!r} is not a member: {example}")
    return {kind: name} | ({"weight": int(weight)} if equals else {})


def show_member(member: Any) -> str:
    """Format a member."""
    kind = next((kind for kind in KINDS if member.get(kind)), "")
    weight = member.get("weight", 1)
    return f"{kind}:{member.get(kind)}" + ("" if weight == 1 else f"={weight}")


def show_members(members: Any) -> str:
    """Format the members of a spread."""
    return ", ".join(map(show_member, members))
