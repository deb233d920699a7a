"""Fence around users' SQL: allow-lists over the plan of Spark's own parser.

    text ──▶ length, "${"  ──▶ Spark's parser ──▶ tree ──▶ classes, functions, relations, sizes ──▶ AcceptedQuery
                                                              └──▶ SqlRefused: line, column, instead

Nothing is analyzed or executed here. A query then runs as `AcceptedQuery.text`, in a session of its own whose catalog has
the declared relations as temporary views and nothing else, with bounds on time and memory (`docs/internals/security-model.md`).
"""

import json
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from spark_worker.sql.checker import RELATION_NAME, Checker
from spark_worker.sql.cost import Cost, Scope
from spark_worker.sql.nodes import VIEWS, Grammar
from spark_worker.sql.refusal import START, NodeRefused, Position, SqlRefused, first_line
from spark_worker.sql.sizes import WindowCall
from spark_worker.sql.tree import Decoder, Node, Step
from storage.domain.limits import SQL_CHARACTERS_MAX

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_POSITION = re.compile(r"\(line (\d+), pos (\d+)\)")
_SURROGATE = re.compile("[\ud800-\udfff]")
_SUBSTITUTION = "${"
_SELECT = "Write one select statement of Spark SQL."


@dataclass(frozen=True)
class AcceptedQuery:
    """Query that passed, with the relations that it reads and the functions that it calls."""

    text: str
    relations: frozenset[str]
    functions: frozenset[str]
    windows: frozenset[WindowCall]
    scans: int


class SqlFence:
    """Checker of texts in the language of a Spark session's parser, by a grammar."""

    def __init__(self, spark: "SparkSession", grammar: Grammar = VIEWS) -> None:
        self._spark = spark
        self._grammar = grammar

    def check(self, text: str, relations: Collection[str]) -> AcceptedQuery:
        """Check a query over relations, which are declared under names of one part.

        Raises SqlRefused.
        """
        assert all(RELATION_NAME.fullmatch(name) for name in relations)
        _check_text(text)
        plan = self._parse(text)
        checker = Checker(self._grammar, partial(_has_options, plan), partial(_text_of, plan, text))
        try:
            root = Decoder().decode(_json(plan))
            cost = checker.check(root, Scope(dict.fromkeys(relations, Cost(scans=1))))
        except NodeRefused as error:
            path = checker.refused_at.path if checker.refused_at else ()
            problem = f"{error.refused} is not allowed"
            raise SqlRefused(problem, error.instead, _position(plan, path)) from None
        used = frozenset(checker.relations & set(relations))
        functions, windows = frozenset(checker.functions), frozenset(checker.windows)
        return AcceptedQuery(text, used, functions, windows, cost.scans)

    def _parse(self, text: str) -> Any:
        from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
        from pyspark.errors import PySparkException

        try:
            return self._spark._jsparkSession.sessionState().sqlParser().parsePlan(text)
        except PySparkException as error:
            message = str(error)
            match = _POSITION.search(message)
            position = Position(int(match[1]), int(match[2]) + 1) if match else START
            raise SqlRefused(first_line(message), _SELECT, position) from None
        except Py4JJavaError:  # the stack of the parser ended
            raise SqlRefused("the query is nested too deeply", _SELECT) from None


def _check_text(text: str) -> None:
    """Refuse what must not reach the parser: long texts, and variables that it replaces.

    `${env:HOME}` would be replaced by the value of the environment variable.
    """
    if len(text) > SQL_CHARACTERS_MAX:
        raise SqlRefused(
            f"the text has {len(text)} characters", f"Use at most {SQL_CHARACTERS_MAX}."
        )
    if _SURROGATE.search(text):
        raise SqlRefused("the text is not Unicode", "Remove single surrogates.")
    before, variable, _ = text.partition(_SUBSTITUTION)
    if variable:
        position = Position(before.count("\n") + 1, len(before) - before.rfind("\n"))
        raise SqlRefused(
            "a variable ${…} is not allowed", "Write the value as a literal.", position
        )


def _json(plan: Any) -> list[dict[str, Any]]:
    """Return the plan in Spark's JSON.

    Raises NodeRefused for one that Spark cannot write, such as one that is too deep.
    """
    from py4j.protocol import Py4JJavaError

    try:
        rows: list[dict[str, Any]] = json.loads(plan.toJSON())
    except (Py4JJavaError, ValueError, RecursionError):
        raise NodeRefused("a query of this form", _SELECT) from None
    return rows


def _has_options(plan: Any, relation: Node) -> bool:
    """Return whether a relation is followed by `with (…)`."""
    *_, value = _steps(plan, relation.path)
    return bool(value.options().size())


def _text_of(plan: Any, text: str, node: Node) -> str:
    """Return a node's text; empty if Spark does not know it."""
    *_, value = _steps(plan, node.path)
    first, last = value.origin().startIndex(), value.origin().stopIndex()
    return text[first.get() : last.get() + 1] if first.isDefined() and last.isDefined() else ""


def _position(plan: Any, path: tuple[Step, ...]) -> Position:
    """Return the place of the last node on a path that knows its place."""
    from py4j.protocol import Py4JError

    position = START
    try:
        for value in _steps(plan, path):
            position = _origin(value) or position
    except (Py4JError, AttributeError, TypeError):
        return position  # of the closest node above
    return position


def _steps(plan: Any, path: tuple[Step, ...]) -> Iterator[Any]:
    """Yield the objects on a path from the plan's root: nodes, sequences and tuples."""
    yield plan
    value = plan
    for step in path:
        value = value.apply(step) if isinstance(step, int) else getattr(value, step)()
        if value.getClass().getName() == "scala.Some":
            value = value.get()
        yield value


def _origin(value: Any) -> Position | None:
    if not _is_node(value):
        return None
    line, column = value.origin().line(), value.origin().startPosition()
    return Position(line.get(), column.get() + 1) if line.isDefined() else None


def _is_node(value: Any) -> bool:
    name = str(value.getClass().getName())
    return name.startswith("org.apache.spark.sql.") and hasattr(value, "origin")
