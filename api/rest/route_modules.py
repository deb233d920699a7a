"""Modules of REST routes, for routers, fast routes, examples and public paths."""

from api.nouns import NOUNS, load_modules

ROUTE_MODULES = tuple(
    module for noun in NOUNS for module in load_modules("api.rest.routes", noun.routes)
)
