"""What is done as Amazon does it only where its limits are asked for (`limits=aws`)."""

from typing import NamedTuple

from storage.domain import limits

NAME_RESTS_MS = limits.MINUTE_MS  # a deleted queue's name


class LikeAmazon(NamedTuple):
    """Whether Amazon's limits are kept where ours are wider."""

    strictly: bool
