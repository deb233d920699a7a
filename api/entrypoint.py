"""What `millstream` tells uvicorn to load: `api.app:create_app`, sooner."""

from typing import TYPE_CHECKING

from api.server.gc_tuning import look_seldom

if TYPE_CHECKING:
    from api.server.gateway import Gateway


def create_app() -> "Gateway":
    """The service as one ASGI application."""
    look_seldom()
    from api.app import create_app as create

    return create()
