"""Cost of a query's parts: by how much its text multiplies relations and values.

A value that a call refers to twice, or that `repeat` enlarges, can be used again in the next subquery, common table expression
or column of the same select list; a `*` can stand twice in each of many nested queries. Each step multiplies, so the products
are bounded. A size is a factor: the result of a part is at most that many times larger than the largest value of a relation.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import NamedTuple

from spark_worker.sql.refusal import NodeRefused
from spark_worker.sql.sizes import size_of
from spark_worker.sql.tree import Node
from storage.domain.limits import SQL_SCANS_MAX, SQL_SIZE_MAX, SQL_WIDTH_MAX

STAR = "*"
_ANALYSIS = "catalyst.analysis."
_EXPRESSIONS = "catalyst.expressions."
_LAMBDA = f"{_EXPRESSIONS}LambdaFunction"
_LITERAL = f"{_EXPRESSIONS}Literal"
_STAR = f"{_ANALYSIS}UnresolvedStar"
_GENERATE = "catalyst.plans.logical.Generate"
_SELECTS = frozenset({"catalyst.plans.logical.Project", "catalyst.plans.logical.Aggregate"})
_SCALAR_NAMES = """
Add And Between BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Divide EqualNullSafe EqualTo GreaterThan GreaterThanOrEqual
ILike In IntegralDivide IsNotNull IsNull LessThan LessThanOrEqual Like LikeAll LikeAny Multiply Not NotLikeAll NotLikeAny Or
Remainder ShiftLeft ShiftRight ShiftRightUnsigned StringLocate Subtract TimestampAdd TimestampDiff UnaryMinus UnaryPositive
"""
_SCALAR = frozenset(_EXPRESSIONS + name for name in _SCALAR_NAMES.split())
"""Expressions whose result is a number, a time or a boolean."""
_CHOICES = frozenset({_LAMBDA} | {f"{_EXPRESSIONS}{name}" for name in ("CaseWhen", "Coalesce")})
"""Expressions whose result is one of their parts."""
_LITERAL_UNIT = 16  # characters of a literal that count as one value


class Cost(NamedTuple):
    """Relations that a part reads, factor of its largest value, and its columns.

    A relation counts as one column.
    """

    scans: int = 0
    size: int = 1
    width: int = 1


@dataclass(frozen=True)
class Scope:
    """Relations that a part may read, and sizes of columns that its select list names."""

    relations: Mapping[str, Cost]
    columns: Mapping[str, int] = field(default_factory=dict)


@dataclass
class Select:
    """Cost of a plan node over that of its children, expression by expression."""

    below: Cost
    _columns: dict[str, int] = field(default_factory=dict)
    _size: int = 1
    _width: int = 0

    def scope(self, scope: Scope) -> Scope:
        """Return the scope of the next expression, which may use the names of earlier ones."""
        return Scope(scope.relations, {**self._columns, STAR: self.below.width})

    def add(self, part: Node, cost: Cost) -> None:
        """Add an expression."""
        is_star = part.kind == _STAR
        self._size = max(self._size, 1 if is_star else cost.size)
        self._width += self.below.width if is_star else 1
        for name in _aliases(part):
            self._columns[name] = max(self._columns.get(name, 1), cost.size)

    def cost(self, node: Node) -> Cost:
        """Return the cost of the plan node."""
        added = self._width if node.kind == _GENERATE else 0
        width = max(1, self._width) if node.kind in _SELECTS else self.below.width + added
        return Cost(self.below.scans, self.below.size * self._size, width)


def _aliases(part: Node) -> list[str]:
    if part.kind == f"{_EXPRESSIONS}Alias":
        return [first_part(str(part.fields["name"]))]
    if part.kind == f"{_ANALYSIS}MultiAlias":
        return same_case(part.name("names")).split(", ")
    return []


def first_part(name: str) -> str:
    """Return the first part of a name, or of a quoted name with a comma, in one case."""
    return same_case(name).partition(", ")[0]


def same_case(name: str) -> str:
    """Return a name in a form that is equal where Java compares without case.

    Java compares each character by upper and by lower case, so a long s equals an s, and an i with any dots an i.
    """
    return "".join(map(_same_character, name))


def _same_character(character: str) -> str:
    upper = character.upper()
    return (upper if len(upper) == 1 else character).lower()[:1]


def beside(children: Sequence[Cost], *, is_join: bool) -> Cost:
    """Return the cost of the children of a plan node."""
    widths = [child.width for child in children] or [1]
    return Cost(
        sum(child.scans for child in children),
        max((child.size for child in children), default=1),
        sum(widths) if is_join else max(widths),
    )


def size_of_expression(node: Node, sizes: Sequence[int]) -> Cost:
    """Return the cost of an expression that calls no function."""
    if node.kind == _LITERAL:
        return Cost(size=1 + len(str(node.fields["value"])) // _LITERAL_UNIT)
    if node.kind in _SCALAR:
        return Cost()
    if node.kind in _CHOICES:
        return Cost(size=max(sizes, default=1))
    return Cost(size=max(1, sum(sizes)))


def size_of_call(function: Node, name: str, sizes: Sequence[int]) -> int:
    """Return the size of a call.

    It is that of its arguments together, or of each for each where the call has a lambda.
    """
    calls_each = any(part.kind == _LAMBDA for part in function.parts)
    return size_of(function, name) * (prod(sizes) if calls_each else max(1, sum(sizes)))


def check_cost(cost: Cost) -> None:
    """Raise NodeRefused for a cost above the limits."""
    if cost.scans > SQL_SCANS_MAX:
        raise NodeRefused(
            f"a query that reads {cost.scans} relations",
            f"Use at most {SQL_SCANS_MAX}, each common table expression counted as often as it is used.",
        )
    if cost.size > SQL_SIZE_MAX:
        raise NodeRefused(
            f"a value that is enlarged {cost.size} times",
            f"Sizes, such as that of repeat, and repeated uses of a value multiply to {SQL_SIZE_MAX} at most.",
        )
    if cost.width > SQL_WIDTH_MAX:
        raise NodeRefused(f"a query with {cost.width} columns", f"Use at most {SQL_WIDTH_MAX}.")
