"""SQL conditions on messages (`where`), like rules of Service Bus and selectors of JMS.

    headers.retries < 3 OR body.vip
    sys.Label LIKE '%bus%' AND quantity + 1 > limit
    region IN ('eu', 'us') AND NOT EXISTS(body.test)

Truth has three values as in SQL-92: a comparison with an absent value, null, an object, an array or a value
of another type is UNKNOWN, and so is what overflows or divides by zero. A condition holds if it is TRUE.
Its result depends on the message alone: there are no functions and no clock.

The names are those of `sql.names`, the values those of `sql.values`.
"""

from storage.domain.filters.sql.errors import ConditionInvalid
from storage.domain.filters.sql.names import Path
from storage.domain.filters.sql.predicates import ConditionDocument, failures, paths_of

__all__ = ["ConditionDocument", "ConditionInvalid", "Path", "SqlCondition"]


class SqlCondition:
    """Compiled SQL condition."""

    __slots__ = ("_predicate", "paths", "text")

    def __init__(self, text: str) -> None:
        """Compile a condition; raises ConditionInvalid."""
        from storage.domain.filters.sql.compiler import compile_condition  # loads sqlglot: 0.3 s

        self.text = text
        self._predicate = compile_condition(text)
        self.paths = frozenset(paths_of(self._predicate))

    def holds(self, document: ConditionDocument) -> bool:
        """Return whether the condition is TRUE, neither FALSE nor UNKNOWN."""
        return self._predicate.test(document) is True

    def explain(self, document: ConditionDocument) -> list[tuple[Path, object]]:
        """Return the values, by path, of the comparisons that keep the condition from being TRUE.

        An absent value is NOTHING. Empty if the condition holds, or if no value could change it.
        """
        paths = dict.fromkeys(failures(self._predicate, document, required=True))
        return [(path, document.value(path)) for path in paths]
