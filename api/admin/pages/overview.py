"""What is wrong, and how much goes through: the first page."""

from fastapi import APIRouter, Request, Response

from api.admin.refusing import PageRoute
from api.admin.rendering import render

router = APIRouter(include_in_schema=False, route_class=PageRoute)


@router.get("/ui")
async def show_overview(request: Request) -> Response:
    """The first page."""
    return render(request, "overview.html", live=True)
