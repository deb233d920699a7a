"""Search of the command palette: pages, and resources by name."""

import asyncio
from collections.abc import Awaitable, Callable
from itertools import chain
from typing import NamedTuple

from fastapi import APIRouter, Response

from api.admin.error_pages import PageRoute
from api.admin.lists import Words
from api.admin.rendering import Context, nouns_for
from api.nouns import NOUNS, NounDeclaration, load_modules
from storage.bootstrap import Storage
from storage.domain.access.permissions import Action, Principal

router = APIRouter(include_in_schema=False, route_class=PageRoute)

_OF_EACH_KIND = 8

Finder = Callable[[Storage, str, str], Awaitable[list[str]]]
"""Returns the names in a namespace that match a part of a name."""


_FINDERS: dict[str, Finder] = {
    noun.name: page.find_names
    for noun in NOUNS
    for page in load_modules("api.admin.pages", noun.pages)
    if hasattr(page, "find_names")
}
_BY_NAME = {noun.name: noun for noun in NOUNS}


class SearchHit(NamedTuple):
    """One place to go to."""

    kind: str
    name: str
    path: str


@router.get("/ui/search")
async def search(context: Context, q: Words = "") -> Response:
    """Return a fragment that lists the matches by name, pages first."""
    part = q.strip()
    pages = [
        SearchHit("page", noun.page.label, noun.page.path)
        for noun in nouns_for(context.principal)
        if noun.page and part.lower() in noun.page.label.lower()
    ]
    named = await _named(context.storage, context.principal, part) if part else []
    return context.render("found.html", found=[*pages, *named])


async def _named(storage: Storage, principal: Principal, part: str) -> list[SearchHit]:
    visible = {noun.name for noun in nouns_for(principal)}
    hits = await asyncio.gather(
        *(
            _find(noun, storage, principal, part)
            for noun in NOUNS
            if noun.name in _FINDERS and _owner(noun).name in visible
        )
    )
    return list(chain.from_iterable(hits))


def _owner(noun: NounDeclaration) -> NounDeclaration:
    """Return the noun whose names grants have: that of the objects, or its parent."""
    return _BY_NAME[noun.parent] if noun.parent else noun


async def _find(
    noun: NounDeclaration, storage: Storage, principal: Principal, part: str
) -> list[SearchHit]:
    """Return the best matches of one noun that the caller may see."""
    action = Action(f"{_owner(noun).name}:list")
    names = [
        name
        for name in await _FINDERS[noun.name](storage, principal.namespace, part)
        if principal.policy.allows(action, name.partition("/")[0])
    ]
    best = sorted(names, key=lambda name: (not name.startswith(part), name))
    return [SearchHit(noun.name, name, _path(noun, name)) for name in best[:_OF_EACH_KIND]]


def _path(noun: NounDeclaration, name: str) -> str:
    owner, _, own = name.partition("/")
    path = f"/ui/{_owner(noun).plural}/{owner}"
    return f"{path}/{noun.plural}/{own}" if noun.parent else path
