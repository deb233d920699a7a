"""Checks of a parsed query against the allow-lists, and the facts about it."""

import re
from collections.abc import Callable
from typing import Any, ClassVar

from spark_worker.sql import functions, nodes
from spark_worker.sql.cost import (
    STAR,
    Cost,
    Scope,
    Select,
    beside,
    check_cost,
    first_part,
    same_case,
    size_of_call,
    size_of_expression,
)
from spark_worker.sql.literals import check_literal
from spark_worker.sql.refusal import NodeRefused
from spark_worker.sql.sizes import WindowCall, session_call, window_call
from spark_worker.sql.tree import Node

RELATION_NAME = re.compile(r"[a-z_][a-z0-9_]{0,63}", re.ASCII)
_ANALYSIS = "catalyst.analysis."
_PLANS = "catalyst.plans.logical."
_JOIN = f"{_PLANS}Join"
_WINDOWS = {"window": window_call, "session_window": session_call}


class Checker:
    """Checker of one query; `refused_at` is the node in work when it raises NodeRefused.

    `has_options` and `text_of` return what Spark's JSON leaves out: whether a relation has options, and the text of a node.
    """

    def __init__(
        self,
        grammar: nodes.Grammar,
        has_options: Callable[[Node], bool],
        text_of: Callable[[Node], str],
    ) -> None:
        self._grammar = grammar
        self._has_options = has_options
        self._text_of = text_of
        self.relations: set[str] = set()
        self.functions: set[str] = set()
        self.windows: set[WindowCall] = set()
        self.refused_at: Node | None = None

    def check(self, node: Node, scope: Scope) -> Cost:
        """Check a node and those below it; return what they cost."""
        try:
            self._check_kind(node)
            cost = self._check_own(node, scope)
            check_cost(cost)
            return cost
        except NodeRefused:
            self.refused_at = self.refused_at or node
            raise

    def _check_kind(self, node: Node) -> None:
        """Refuse a class that is not listed, and a field whose value Spark left out of the JSON."""
        unencoded = self._grammar.unencoded(node.kind)
        if unencoded is None:
            raise NodeRefused(*nodes.describe(node.kind))
        for name, value in node.fields.items():
            if name not in unencoded and _has_null(value):
                noun, instead = nodes.describe(node.kind)
                raise NodeRefused(f"this form of {noun}", instead)

    def _check_own(self, node: Node, scope: Scope) -> Cost:
        is_plan = node.kind in self._grammar.plans
        default = Checker._check_plan if is_plan else Checker._check_expression
        return self._CHECKS.get(node.kind, default)(self, node, scope)

    def _check_plan(self, node: Node, scope: Scope) -> Cost:
        """Check a plan node: its expressions enlarge and multiply what its children return."""
        children = [
            self.check(part, scope) for part in node.parts if part.kind in self._grammar.plans
        ]
        own = [part for part in node.parts if part.kind not in self._grammar.plans]
        select = Select(beside(children, is_join=node.kind == _JOIN))
        for part in sorted(own, key=_is_grouping):
            select.add(part, self.check(part, select.scope(scope)))
        return select.cost(node)

    def _check_expression(self, node: Node, scope: Scope) -> Cost:
        return size_of_expression(node, [self.check(part, scope).size for part in node.parts])

    def _check_with(self, node: Node, scope: Scope) -> Cost:
        child, *definitions = node.parts
        named = node.fields["cteRelations"]
        if node.fields["allowRecursion"] is not False or len(named) != len(definitions):
            raise NodeRefused("a recursive common table expression", "Leave `recursive` out.")
        for entry, definition in zip(named, definitions, strict=True):
            name = _lower(entry["_1"])
            if name in scope.relations or not RELATION_NAME.fullmatch(name):
                raise NodeRefused(
                    f"a common table expression named {name!r}",
                    "Use a name of its own, of a-z, 0-9 and underscore.",
                )
            scope = Scope({**scope.relations, name: self.check(definition, scope)})
        return self.check(child, scope)

    def _check_relation(self, node: Node, scope: Scope) -> Cost:
        name = _lower(node.name("multipartIdentifier"))
        if name not in scope.relations or node.fields["isStreaming"] is not False:
            allowed = ", ".join(sorted(scope.relations))
            raise NodeRefused(f"the relation {name!r}", f"Use one of: {allowed}.")
        if self._has_options(node):
            raise NodeRefused(f"the relation {name!r} with options", "Leave them out.")
        self.relations.add(name)
        return scope.relations[name]

    def _check_join(self, node: Node, scope: Scope) -> Cost:
        is_using = "usingColumns" in (node.fields["joinType"] or {})
        if not is_using and not node.fields.get("condition"):
            raise NodeRefused("a join without a condition", "Write join … on, or join … using.")
        return self._check_plan(node, scope)

    def _check_function(self, node: Node, scope: Scope) -> Cost:
        name = _lower(node.name())
        _check_callable(name, self._grammar.functions)
        if node.fields["isInternal"] is not False:
            raise NodeRefused(f"the internal function {name}", "Use a built-in function.")
        self.functions.add(name)
        size = size_of_call(node, name, [self.check(part, scope).size for part in node.parts])
        check_cost(Cost(size=size))
        if name in _WINDOWS:
            self.windows.add(_WINDOWS[name](node))
        return Cost(size=1 if name in functions.SCALAR else size)

    def _check_generator(self, node: Node, scope: Scope) -> Cost:
        name = _lower(_generator_name(node.fields["name"]))
        _check_callable(name, functions.GENERATORS)
        self.functions.add(name)
        return self._check_expression(node, scope)

    def _check_attribute(self, node: Node, scope: Scope) -> Cost:
        name = same_case(node.name())
        if name in functions.AMBIENT_COLUMNS:
            raise NodeRefused(
                f"the column {name!r} without its relation",
                "Spark reads it as a function where the relation has no such column: write relation.column.",
            )
        return Cost(size=scope.columns.get(first_part(node.name()), 1))

    def _check_literal(self, node: Node, scope: Scope) -> Cost:
        check_literal(node, self._text_of)
        return self._check_expression(node, scope)

    def _check_star(self, node: Node, scope: Scope) -> Cost:
        return Cost(size=scope.columns.get(STAR, 1))

    _CHECKS: ClassVar[dict[str, Callable[["Checker", Node, Scope], Cost]]] = {
        f"{_PLANS}UnresolvedWith": _check_with,
        _JOIN: _check_join,
        f"{_ANALYSIS}UnresolvedRelation": _check_relation,
        f"{_ANALYSIS}UnresolvedFunction": _check_function,
        f"{_ANALYSIS}UnresolvedGenerator": _check_generator,
        f"{_ANALYSIS}UnresolvedAttribute": _check_attribute,
        f"{_ANALYSIS}UnresolvedStar": _check_star,
        "catalyst.expressions.Literal": _check_literal,
    }


def _is_grouping(part: Node) -> bool:
    """Return whether an expression is of `group by`, which may use names of the select list."""
    return "groupingExpressions" in part.path[-2:]


def _has_null(value: Any) -> bool:
    """Return whether a value that is not a tree is null, or a sequence or product has one."""
    if isinstance(value, dict):
        return "num-children" not in value and any(map(_has_null, value.values()))
    return any(map(_has_null, value)) if isinstance(value, list) else value is None


def _check_callable(name: str, allowed: frozenset[str]) -> None:
    if name not in allowed:
        refused = functions.BUFFERED | functions.REFUSED
        instead = refused.get(name, "Use one of the allowed functions.")
        raise NodeRefused(f"the function {name}", instead)


def _generator_name(name: Any) -> str:
    """Return the name of a lateral view's function; with a database it is no allowed one."""
    return ".".join(str(part) for key, part in name.items() if key != "product-class")


def _lower(name: str) -> str:
    if not name.isascii():
        raise NodeRefused(f"the name {name!r}", "Use ASCII letters, digits and underscore.")
    return name.lower()
