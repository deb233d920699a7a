"""Compiler of SQL conditions: a syntax tree to predicates, by an allow-list of its nodes."""

from collections.abc import Callable, Iterator, Sequence

from sqlglot import exp

from storage.domain import limits
from storage.domain.filters.sql import parser
from storage.domain.filters.sql.errors import ConditionInvalid
from storage.domain.filters.sql.like import compile_like
from storage.domain.filters.sql.operands import ARITHMETIC, compile_operand, path_of, position_of
from storage.domain.filters.sql.predicates import (
    ConditionDocument,
    Operand,
    Predicate,
    Test,
    conjunction,
    disjunction,
    negation,
)
from storage.domain.filters.sql.values import NUMBERS, ORDERINGS, Scalar, comparison
from storage.domain.log.json_body import NOTHING

_COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_ARGUMENTS = frozenset(
    {"this", "expression", "expressions", "low", "high", "field", "negate", "is_string"}
)
_ARGUMENTS |= {"typed", "safe"}  # how a division would be written in a dialect
"""Arguments of nodes that the compiler reads, and two that do not change a condition."""


def compile_condition(text: str) -> Predicate:
    """Compile a condition to a predicate.

    Raises ConditionInvalid.
    """
    tree = parser.parse(text)
    _check_size(tree)
    return _condition(tree)


def _check_size(tree: exp.Expr) -> None:
    """Bound nodes and depth, where a chain of one connector is one level."""
    level, nodes, depth = [tree], 0, 0
    while level:
        _check_arguments(level)
        nodes += len(level)
        depth += 1
        if nodes > limits.WHERE_NODES_MAX:
            detail = (
                f"A condition has at most {limits.WHERE_NODES_MAX} names, literals and operators."
            )
            raise ConditionInvalid(detail)
        if depth > limits.WHERE_DEPTH_MAX:
            detail = (
                f"A condition has at most {limits.WHERE_DEPTH_MAX} operators inside one another."
            )
            raise ConditionInvalid(detail)
        level = [child for node in level for child in _children(node)]


def _check_arguments(nodes: Sequence[exp.Expr]) -> None:
    for node in nodes:
        if not isinstance(node, exp.Column | exp.Dot):
            for name, value in node.args.items():
                if value and name not in _ARGUMENTS:
                    detail = f"{name.upper()} of {node.key.upper()} is not supported."
                    raise ConditionInvalid(detail, position_of(node))


def _children(node: exp.Expr) -> Iterator[exp.Expr]:
    if isinstance(node, exp.And | exp.Or):
        yield from _chain(node)
    elif not isinstance(node, exp.Column | exp.Dot):
        yield from node.iter_expressions()


def _chain(node: exp.Expr) -> list[exp.Expr]:
    """Return the operands of a chain of one connector, from left to right."""
    operands: list[exp.Expr] = []
    pending = [node]
    while pending:
        part = pending.pop()
        if type(part) is type(node):
            pending += [part.expression, part.this]
        else:
            operands.append(part)
    return operands


def _condition(node: exp.Expr) -> Predicate:
    if type(node) in _COMPARISONS:
        return _comparison(node)
    compile_node = _CONDITIONS.get(type(node))
    if compile_node is None:
        raise ConditionInvalid(_not_a_condition(node), position_of(node))
    predicate = compile_node(node)
    return negation(predicate) if _has_not(node) else predicate


def _has_not(node: exp.Expr) -> bool:
    """Return whether a node has its NOT as an argument, like `a NOT LIKE 'x'`."""
    test = node.this if isinstance(node, exp.Escape) else node
    return bool(test.args.get("negate"))


def _not_a_condition(node: exp.Expr) -> str:
    if isinstance(node, exp.Literal | exp.Neg) or type(node) in ARITHMETIC:
        return f"{node.sql()} is a value; a condition is expected here."
    return f"{node.key.upper()} is not supported."


def _parentheses(node: exp.Expr) -> Predicate:
    return _condition(node.this)


def _not(node: exp.Expr) -> Predicate:
    return negation(_condition(node.this))


def _and(node: exp.Expr) -> Predicate:
    return conjunction([_condition(part) for part in _chain(node)])


def _or(node: exp.Expr) -> Predicate:
    return disjunction([_condition(part) for part in _chain(node)])


def _boolean(node: exp.Expr) -> Predicate:
    truth = bool(node.this)
    return Predicate(lambda _: truth)


def _null(_: exp.Expr) -> Predicate:
    return Predicate(lambda _: None)


def _flag(node: exp.Expr) -> Predicate:
    """Compile a name that stands as a condition: UNKNOWN unless its value is a boolean."""
    path = path_of(node)

    def test(document: ConditionDocument) -> bool | None:
        value = document.value(path)
        return value if isinstance(value, bool) else None

    return Predicate(test, (path,))


def _exists(node: exp.Expr) -> Predicate:
    if not isinstance(node.this, exp.Column | exp.Dot):
        raise ConditionInvalid("EXISTS takes a name.", position_of(node))
    path = path_of(node.this)
    return Predicate(lambda document: document.value(path) is not NOTHING, (path,))


def _is_null(node: exp.Expr) -> Predicate:
    if not isinstance(node.expression, exp.Null):
        raise ConditionInvalid("IS is followed by NULL or NOT NULL.", position_of(node))
    if isinstance(node.this, exp.Column | exp.Dot):
        path = path_of(node.this)
        return Predicate(lambda document: _is_missing(document.value(path)), (path,))
    operand = compile_operand(node.this)
    read = operand.read
    return Predicate(lambda document: read(document) is None, operand.paths)


def _is_missing(value: object) -> bool:
    return value is None or value is NOTHING


def _comparison(node: exp.Expr) -> Predicate:
    left, right = compile_operand(node.this), compile_operand(node.expression)
    symbol = _COMPARISONS[type(node)]
    return Predicate(_compared(symbol, left, right), left.paths + right.paths)


def _compared(symbol: str, left: Operand, right: Operand) -> Test:
    if type(right.literal) in NUMBERS or isinstance(right.literal, str):
        return _compared_with_literal(symbol, left, right.literal)
    compare = comparison(symbol, left_header=left.is_header, right_header=right.is_header)
    read_left, read_right = left.read, right.read
    return lambda document: compare(read_left(document), read_right(document))


def _compared_with_literal(symbol: str, left: Operand, literal: Scalar) -> Test:
    """Compile the most frequent comparison: values of the literal's type need no coercion."""
    compare, read = ORDERINGS[symbol], left.read
    coerce = comparison(symbol, left_header=left.is_header, right_header=False)
    types = {str} if isinstance(literal, str) else NUMBERS

    def test(document: ConditionDocument) -> bool | None:
        value = read(document)
        return compare(value, literal) if type(value) in types else coerce(value, literal)

    return test


def _between(node: exp.Expr) -> Predicate:
    value, low, high = (compile_operand(node.args[name]) for name in ("this", "low", "high"))
    bounds = [_compared(">=", value, low), _compared("<=", value, high)]
    both = conjunction([Predicate(test) for test in bounds])
    return Predicate(both.test, value.paths + low.paths + high.paths)


def _in(node: exp.Expr) -> Predicate:
    members = [compile_operand(member) for member in node.expressions]
    if not members:  # IN name
        raise ConditionInvalid("IN is followed by values in parentheses.", position_of(node))
    value = compile_operand(node.this)
    paths = sum((member.paths for member in members), value.paths)
    if all(isinstance(member.literal, str) for member in members):
        return Predicate(_among_texts(value, [member.literal for member in members]), paths)
    tests = [Predicate(_compared("=", value, member)) for member in members]
    return Predicate(disjunction(tests).test, paths)


def _among_texts(value: Operand, literals: Sequence[Scalar]) -> Test:
    texts, read = frozenset(literals), value.read

    def test(document: ConditionDocument) -> bool | None:
        text = read(document)
        return text in texts if isinstance(text, str) else None

    return test


def _like(node: exp.Expr) -> Predicate:
    return _like_pattern(node, "")


def _escape(node: exp.Expr) -> Predicate:
    escape = node.expression
    if not isinstance(node.this, exp.Like):
        raise ConditionInvalid("ESCAPE follows the pattern of LIKE.", position_of(node))
    if not (isinstance(escape, exp.Literal) and escape.is_string and len(escape.this) == 1):
        raise ConditionInvalid("ESCAPE is followed by one character in quotes.", position_of(node))
    return _like_pattern(node.this, escape.this)


def _like_pattern(node: exp.Expr, escape: str) -> Predicate:
    pattern = node.expression
    if not (isinstance(pattern, exp.Literal) and pattern.is_string):
        raise ConditionInvalid("LIKE is followed by a pattern in quotes.", position_of(node))
    matches, value = compile_like(pattern.this, escape), compile_operand(node.this)
    read = value.read

    def test(document: ConditionDocument) -> bool | None:
        text = read(document)
        return matches(text) if isinstance(text, str) else None

    return Predicate(test, value.paths)


_CONDITIONS: dict[type[exp.Expr], Callable[[exp.Expr], Predicate]] = {
    exp.Paren: _parentheses,
    exp.Not: _not,
    exp.And: _and,
    exp.Or: _or,
    exp.Boolean: _boolean,
    exp.Null: _null,
    exp.Column: _flag,
    exp.Dot: _flag,
    exp.Exists: _exists,
    exp.Is: _is_null,
    exp.Between: _between,
    exp.In: _in,
    exp.Like: _like,
    exp.Escape: _escape,
}
