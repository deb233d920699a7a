"""Program that adds a noun to the list and prints where it appears, as JSON.

It runs in a process of its own: what is collected from the list is collected once.
"""

import json
import sys
from types import ModuleType
from typing import Any

from fastapi import APIRouter

from api import nouns
from api.cli.shell.terminal import Terminal, noun, verb
from api.native.examples import Example
from storage.domain.access.permissions import EVERYTHING, Principal

TOY = nouns.NounDeclaration(
    "toy",
    "toys",
    tag="Toys.",
    routes=("toys",),
    pages=("toys",),
    page=nouns.DashboardPage("Toys", "/ui/toys", "z"),
    icon="M0 0h1",
    help="Toys.",
    commands=("toy:toy",),
    is_granted_by_name=True,
)


def _add(name: str, **members: Any) -> None:
    module = sys.modules[name] = ModuleType(name)
    vars(module).update(members)


def _routes() -> APIRouter:
    router = APIRouter(prefix="/v1/toys", tags=["toys"])

    @router.get("/{toy}")
    async def get_toy(toy: str) -> None:
        """Show a toy."""

    return router


def _pages() -> APIRouter:
    router = APIRouter(include_in_schema=False)

    @router.get("/ui/toys")
    async def list_toys() -> None:
        pass

    return router


def _command() -> Any:
    toy = noun()

    @verb(toy, "ls")
    def list_toys(cli: Terminal) -> None:
        """List toys."""

    return toy


def _appearances() -> dict[str, Any]:
    from api.admin.rendering import nouns_for
    from api.app import create_app
    from api.cli.command_tree import command_tree
    from api.cli.shell.error_messages import HINTS
    from api.native.dependencies import named_in
    from api.server.gateway import _is_public

    gateway = create_app()
    document = gateway.openapi()
    tree: Any = command_tree()
    request: Any = type("Request", (), {"path_params": {"toy": "top"}})
    return {
        "routes": [path for path in document["paths"] if "toy" in path],
        "tag": document["tags"][-1],
        "pages": [
            route.path for route in gateway.control.state.cold_routes if "/ui/toy" in route.path
        ],
        "navigation": [noun.name for noun in nouns_for(Principal("ada", policy=EVERYTHING))][-1],
        "commands": list(tree.commands["toy"].commands),
        "hint": HINTS["toy_not_found"],
        "name": named_in(request),
        "public": _is_public("POST", "/v1/toys/open"),
    }


if __name__ == "__main__":
    nouns.NOUNS = (*nouns.NOUNS, TOY)
    _add(
        "api.rest.routes.toys",
        router=_routes(),
        EXAMPLES={"get_toy": Example("/v1/toys/top")},
        is_public=lambda _, path: path == "/v1/toys/open",
    )
    _add("api.admin.pages.toys", router=_pages())
    _add("api.cli.commands.toy", toy=_command())
    sys.stdout.write(json.dumps(_appearances()))
