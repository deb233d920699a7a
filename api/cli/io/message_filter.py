"""Options that filter browsed messages and dead letters."""

from typing import Annotated, Any

from api.cli.shell.options import moment, option

GroupFilter = Annotated[
    list[str] | None, option("--group", "Only of this message group; repeat for more.", "GROUP")
]
HeaderFilter = Annotated[
    list[str] | None, option("--header", "Only with this header; repeat for more.", "NAME:VALUE")
]
BodyFilter = Annotated[
    list[str] | None,
    option(
        "--where",
        "Only with this value at a JSON Pointer in the body, such as /customer=7; repeat for more.",
        "/FIELD=VALUE",
    ),
]
TextFilter = Annotated[
    str | None, option("--text", "Only with this text in the body or a header.", "TEXT")
]
SentSince = Annotated[Any, moment("--since", help="Only sent at or after this time.")]
SentUntil = Annotated[Any, moment("--until", help="Only sent before this time.")]


def filter_query(**parameters: Any) -> dict[str, Any]:
    """Return the parameters of the REST API for the options that were given."""
    return {name: value for name, value in parameters.items() if value}
