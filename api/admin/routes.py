"""The dashboard's routes: its pages by noun, its files, the way in."""

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from api.admin import assets
from api.admin.error_pages import LOGIN_PATH, PageRoute
from api.admin.pages import search
from api.admin.rendering import Context, render
from api.errors import HttpError, HttpErrorCode
from api.nouns import NOUNS, load_modules

REFERENCE_PATH = "/ui/reference"

entry = APIRouter(include_in_schema=False, route_class=PageRoute)
rest = APIRouter(include_in_schema=False, route_class=PageRoute)


@entry.get(LOGIN_PATH)
async def show_login(request: Request) -> Response:
    """Show the login page, which exchanges an API key for a session."""
    if not request.app.state.guarded:
        return RedirectResponse("/ui", 303)
    return render(request, "login.html")


@entry.get("/docs")
async def redirect_to_reference() -> Response:
    """Redirect to the API reference, where users of FastAPI look first."""
    return RedirectResponse(REFERENCE_PATH, 307)


@rest.get(REFERENCE_PATH)
async def show_reference(context: Context) -> Response:
    """Show the API reference, which tries calls against this service."""
    return context.render("reference.html")


@rest.get("/ui/{path:path}")
async def show_not_found(request: Request, path: str) -> Response:
    """Answer paths without a page; redirect a page's path with a trailing slash to the page."""
    if path.endswith("/") or not path:
        target = f"/ui/{path}".rstrip("/")
        return RedirectResponse(f"{target}?{request.url.query}".rstrip("?"), 307)
    raise HttpError(HttpErrorCode.NOT_FOUND, f"Page /ui/{path} does not exist.")


ROUTERS = (
    assets.router,
    entry,
    *(page.router for noun in NOUNS for page in load_modules("api.admin.pages", noun.pages)),
    search.router,
    rest,
)
"""In the order that they are asked in: what takes every path is last."""
