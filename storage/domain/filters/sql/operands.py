"""Compiler of the values in a SQL condition: names, literals and arithmetic."""

import operator

from sqlglot import exp

from storage.domain.filters.sql.errors import ConditionInvalid
from storage.domain.filters.sql.names import Path, resolve
from storage.domain.filters.sql.predicates import ConditionDocument, Operand
from storage.domain.filters.sql.values import (
    NUMBERS,
    Calculate,
    Scalar,
    calculation,
    divide,
    number_of,
    operand_number,
    remainder,
    scalar_of,
)

ARITHMETIC: dict[type[exp.Expr], Calculate] = {
    exp.Add: operator.add,
    exp.Sub: operator.sub,
    exp.Mul: operator.mul,
    exp.Div: divide,
    exp.Mod: remainder,
}


def compile_operand(node: exp.Expr) -> Operand:
    """Compile a value; raises ConditionInvalid."""
    if type(node) in ARITHMETIC:
        return _arithmetic(node)
    match node:
        case exp.Paren():
            return compile_operand(node.this)
        case exp.Column() | exp.Dot():
            return _value_at(path_of(node))
        case exp.Literal():
            return _constant(node.this if node.is_string else _number(node))
        case exp.Boolean():
            return _constant(bool(node.this))
        case exp.Null():
            return _constant(None)
        case exp.Neg():
            return _negative(compile_operand(node.this))
        case _:
            raise ConditionInvalid(_not_a_value(node), position_of(node))


def _not_a_value(node: exp.Expr) -> str:
    if isinstance(node, exp.Predicate | exp.Connector | exp.Not | exp.Escape):
        return "A condition is not a value: connect conditions by AND, OR and NOT."
    return f"{node.key.upper()} is not supported."


def _constant(literal: Scalar) -> Operand:
    return Operand(lambda _: literal, literal=literal)


def _number(node: exp.Expr) -> int | float:
    number = number_of(node.this)
    if number is None:
        raise ConditionInvalid(f"'{node.this}' is not a finite number.")
    return number


def _value_at(path: Path) -> Operand:
    return Operand(
        lambda document: scalar_of(document.value(path)), (path,), is_header=path[0] == "headers"
    )


def _negative(operand: Operand) -> Operand:
    if type(operand.literal) in NUMBERS:
        return _constant(-operand.literal)  # type: ignore[operator]  # a number
    read, is_header = operand.read, operand.is_header

    def negate(document: ConditionDocument) -> Scalar:
        number = operand_number(read(document), is_header=is_header)
        return None if number is None else -number

    return Operand(negate, operand.paths)


def _arithmetic(node: exp.Expr) -> Operand:
    left, right = compile_operand(node.this), compile_operand(node.expression)
    headers = {"left_header": left.is_header, "right_header": right.is_header}
    calculate = calculation(ARITHMETIC[type(node)], **headers)
    read_left, read_right = left.read, right.read
    return Operand(
        lambda document: calculate(read_left(document), read_right(document)),
        left.paths + right.paths,
    )


def path_of(node: exp.Expr) -> Path:
    """Return the path that a name refers to; raises ConditionInvalid."""
    assert isinstance(node, exp.Column | exp.Dot)
    parts = node.parts
    if not all(isinstance(part, exp.Identifier) for part in parts):
        raise ConditionInvalid("A name consists of words with dots between.", position_of(node))
    words = [part.name for part in parts]
    return resolve(words, is_quoted=bool(parts[0].args["quoted"]), position=position_of(node))


def position_of(node: exp.Expr) -> int | None:
    """Return the position of the first name in a node; None without names."""
    return min(
        (name.meta["start"] for name in node.find_all(exp.Identifier) if "start" in name.meta),
        default=None,
    )
