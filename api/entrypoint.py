"""Application that `millstream` passes to uvicorn: `api.app:create_app`, loaded earlier."""

from typing import TYPE_CHECKING

from api.config.startup_settings import wait_at_start_barrier
from api.server.gc_tuning import relax_thresholds

if TYPE_CHECKING:
    from api.server.gateway import Gateway


def create_app() -> "Gateway":
    """Create the service as one ASGI application, and return it when it may start."""
    relax_thresholds()
    from api.app import create_app as create

    application = create()
    wait_at_start_barrier()
    return application
