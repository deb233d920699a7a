"""Refusals of the hot store. In each case nothing happened."""

from enum import IntEnum

from storage.domain.errors import StorageUnavailable


class LogProblem(IntEnum):
    """Problem of a log. Each has its remedy in `storage.log.provisioner`."""

    UNKNOWN_LOG = 1
    DELETED = 2
    CALLER_BEHIND = 3
    LOG_BEHIND = 4
    AT_CEILING = 5


class LogNotReady(Exception):
    """Refusal: the log must be created, advanced or given offsets first; nothing happened.

    `fact`: the log's next offset (LOG_BEHIND, AT_CEILING) or its store epoch (CALLER_BEHIND), or -1.
    """

    def __init__(self, problem: LogProblem, fact: int = -1) -> None:
        super().__init__(problem.name)
        self.problem = problem
        self.fact = fact


class StoreChanged(StorageUnavailable):
    """The store was replaced, or has lost data; nothing happened.

    A caller that repeats the call makes it for the present store: engines do, so few callers see this.
    """


class LogOpen(Exception):
    """Error: the log still accepts records, so its producer state is not final."""


class ParentsRequired(Exception):
    """Refusal: the log does not know this producer; its closed parents may. Nothing happened."""


class PartitionsChanged(Exception):
    """Refusal: the queue has other partitions than the caller knows. Nothing happened."""
