"""Branch of a route: its copies for one target."""

from typing import NamedTuple

from storage.domain.topics.targets.named_target import TargetName


class RouteBranch(NamedTuple):
    """Copies of a revision of a route for its target, or for one member of its spread.

    `number`: of the revision. `target_key`: key of the copies for the target, which several routes may share; shadow routes share
    one that is no target's. `own_key`: key of the copies of this branch alone, while its route is paused or it is behind. `member`:
    number of the member; None unless the target is a spread.
    """

    number: int
    target: TargetName
    target_key: str
    own_key: str
    member: int | None = None
