"""State of a view, as its owner sees it."""

from enum import StrEnum

from storage.domain.views.progress import ViewRevision
from storage.domain.views.view import View


class ViewState(StrEnum):
    """State of a view.

    building: the rows of another query are computed, while the present ones answer. stopped: too many batches failed, or one
    that cannot succeed.
    """

    RUNNING = "running"
    BUILDING = "building"
    PAUSED = "paused"
    STOPPED = "stopped"


def state_of(view: View, active: ViewRevision, building: ViewRevision | None) -> ViewState:
    """Return the state of a view with its revisions."""
    if view.spec.paused:
        return ViewState.PAUSED
    if active.is_stopped:
        return ViewState.STOPPED
    return ViewState.RUNNING if building is None else ViewState.BUILDING
