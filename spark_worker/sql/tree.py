"""Parsed query as a tree of nodes, decoded from the JSON that Spark makes of a plan.

Spark writes a tree in pre-order: each node has its class, the number of its children, and its fields. A child is a number
in a field; another tree in a field, such as the expressions of a plan node, is an array of its own. Spark writes `null` for
a field that it cannot encode, so a class is allowed only with the fields that may be null (`spark_worker.sql.nodes`).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from spark_worker.sql.refusal import NodeRefused
from storage.domain.limits import SQL_DEPTH_MAX, SQL_NODES_MAX

_PREFIX = "org.apache.spark.sql."
_TOO_LARGE = NodeRefused("a query of this size", "Divide it into several, or shorten it.")

Step = str | int
"""Name of an accessor, or index in a sequence of Scala."""


@dataclass
class Node:
    """Plan node or expression: class without Spark's prefix, fields, path from the root."""

    kind: str
    fields: dict[str, Any]
    path: tuple[Step, ...]
    depth: int
    parts: list["Node"] = field(default_factory=list)

    def name(self, field_name: str = "nameParts") -> str:
        """Return a name with one part; a name with several contains a comma."""
        return str(self.fields[field_name]).removeprefix("[").removesuffix("]")

    def walk(self) -> Iterator["Node"]:
        """Yield the node and all nodes below it."""
        yield self
        for part in self.parts:
            yield from part.walk()


class Decoder:
    """Decoder of one query's JSON; bounds its size.

    Raises NodeRefused.
    """

    def __init__(self) -> None:
        self._nodes = 0

    def decode(self, rows: list[dict[str, Any]]) -> Node:
        """Return the root of a query."""
        return self._tree(rows, (), 0)

    def _tree(self, rows: list[dict[str, Any]], path: tuple[Step, ...], depth: int) -> Node:
        pending = iter(rows)
        root = self._node(pending, path, depth)
        if next(pending, None) is not None:
            raise NodeRefused("a plan of this form", "Use a plain select statement.")
        return root

    def _node(self, rows: Iterator[dict[str, Any]], path: tuple[Step, ...], depth: int) -> Node:
        self._nodes += 1
        if depth > SQL_DEPTH_MAX or self._nodes > SQL_NODES_MAX:
            raise _TOO_LARGE
        row = next(rows)
        fields = {name: value for name, value in row.items() if name not in _OF_TREE}
        node = Node(row["class"].removeprefix(_PREFIX), fields, path, depth)
        node.parts += [
            self._node(rows, (*path, "children", index), depth + 1)
            for index in range(row["num-children"])
        ]
        for name, value in fields.items():
            node.parts += self._trees(value, (*path, name), depth + 1)
        return node

    def _trees(self, value: Any, path: tuple[Step, ...], depth: int) -> Iterator[Node]:
        """Yield the trees in a field: alone, in sequences, or in tuples."""
        if depth > SQL_DEPTH_MAX:
            raise _TOO_LARGE
        if isinstance(value, list) and value and _is_row(value[0]):
            yield self._tree(value, path, depth)
        elif isinstance(value, list):
            for index, item in enumerate(value):
                yield from self._trees(item, (*path, index), depth + 1)
        elif isinstance(value, dict):
            for name, item in value.items():
                yield from self._trees(item, (*path, name), depth + 1)


_OF_TREE = frozenset({"class", "num-children"})


def _is_row(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() >= _OF_TREE
