"""Parser of SQL conditions: sqlglot with an allow-list of tokens.

The tokens are checked before they are parsed: only those of conditions, in an order that no statement,
function or type has, and nested no deeper than the parser's recursion can bear. Words that are not keywords
of conditions are names, so a header may be called `order` or `date`.
"""

from collections.abc import Iterator, Sequence
from typing import NoReturn

from sqlglot import exp
from sqlglot.errors import TokenError
from sqlglot.parser import Parser
from sqlglot.tokenizer_core import Token, TokenType
from sqlglot.tokens import Tokenizer

from storage.domain import limits
from storage.domain.filters.sql.errors import ConditionInvalid

_KEYWORDS = frozenset(
    [
        "AND",
        "OR",
        "NOT",
        "IN",
        "BETWEEN",
        "LIKE",
        "ESCAPE",
        "IS",
        "NULL",
        "TRUE",
        "FALSE",
        "EXISTS",
        "<>",
        "!=",
        "<=",
        ">=",
    ]
)
_NAMES = frozenset({TokenType.VAR, TokenType.IDENTIFIER})
_LITERALS = frozenset(
    {TokenType.STRING, TokenType.NUMBER, TokenType.NULL, TokenType.TRUE, TokenType.FALSE}
)
_OPERANDS = _NAMES | _LITERALS
_PREFIXES = frozenset({TokenType.NOT, TokenType.DASH, TokenType.PLUS})
_ALLOWED = (
    _OPERANDS
    | _PREFIXES
    | {TokenType.DOT, TokenType.COMMA, TokenType.L_PAREN, TokenType.R_PAREN}
    | {TokenType.EQ, TokenType.NEQ, TokenType.LT, TokenType.LTE, TokenType.GT, TokenType.GTE}
    | {TokenType.STAR, TokenType.SLASH, TokenType.MOD, TokenType.AND, TokenType.OR}
    | {TokenType.IN, TokenType.BETWEEN, TokenType.LIKE, TokenType.ESCAPE, TokenType.IS}
    | {TokenType.EXISTS}
)
_SUBJECTS = _OPERANDS | {TokenType.R_PAREN}
_BEGINNINGS = _OPERANDS | {TokenType.L_PAREN, TokenType.EXISTS}
_OPENINGS = frozenset({None, TokenType.L_PAREN, TokenType.COMMA})
_CLOSINGS = frozenset({None, TokenType.R_PAREN, TokenType.COMMA})
_INCOMPLETE = "A value, an operator or a parenthesis is missing."
_STATEMENTS = frozenset(
    [
        "SELECT",
        "INSERT",
        "UPDATE",
        "DELETE",
        "CREATE",
        "DROP",
        "ALTER",
        "WITH",
        "SET",
        "TRUNCATE",
        "GRANT",
        "MERGE",
    ]
)


class ConditionTokenizer(Tokenizer):
    """Tokenizer of conditions: few keywords, and names in quotes or brackets."""

    IDENTIFIERS = ['"', ("[", "]")]
    KEYWORDS = {word: token for word, token in Tokenizer.KEYWORDS.items() if word in _KEYWORDS}


class ConditionParser(Parser):
    """Parser whose errors are those of conditions."""

    def raise_error(self, message: str, token: Token | None = None) -> NoReturn:
        wrong = token or self._curr
        if wrong.token_type is TokenType.SENTINEL:
            raise ConditionInvalid(_INCOMPLETE)
        raise ConditionInvalid(f"'{wrong.text}' is not expected here.", wrong.start)


def parse(text: str) -> exp.Expr:
    """Parse a condition to a syntax tree.

    Raises ConditionInvalid.
    """
    tokens = tokenize(text)
    try:
        trees = ConditionParser().parse(tokens, text)
    except RecursionError:
        raise ConditionInvalid("The condition is nested too deeply.") from None
    [tree] = trees
    if tree is None:
        raise ConditionInvalid(_INCOMPLETE)
    return tree


def tokenize(text: str) -> list[Token]:
    """Return the tokens of a condition, all of them allowed.

    Raises ConditionInvalid.
    """
    if len(text) > limits.WHERE_CHARACTERS_MAX:
        detail = f"A condition has at most {limits.WHERE_CHARACTERS_MAX} characters."
        raise ConditionInvalid(detail)
    try:
        tokens = ConditionTokenizer().tokenize(text)
    except TokenError:
        raise ConditionInvalid("A quotation mark, bracket or comment is not closed.") from None
    if not tokens:
        raise ConditionInvalid("The condition is empty.")
    for token in tokens:
        _check_token(token)
    _check_order(tokens)
    _check_nesting(tokens)
    return tokens


def lone_names(text: str) -> Iterator[Token]:
    """Yield the unquoted names of a condition that stand alone, without a dot beside them.

    Raises ConditionInvalid.
    """
    tokens = tokenize(text)
    for before, token, after in _neighbours(tokens):
        if token.token_type is TokenType.VAR and TokenType.DOT not in {_type(before), _type(after)}:
            yield token


def _check_token(token: Token) -> None:
    if token.comments:
        raise ConditionInvalid("Comments are not supported.", token.start)
    if token.token_type not in _ALLOWED or (token.token_type, token.text) == (TokenType.NOT, "!"):
        raise ConditionInvalid(f"'{token.text}' is not supported.", token.start)
    if token.token_type is TokenType.NUMBER:
        _check_number(token)


def _check_number(token: Token) -> None:
    if len(token.text) > limits.WHERE_NUMBER_CHARACTERS_MAX:
        detail = f"A number has at most {limits.WHERE_NUMBER_CHARACTERS_MAX} characters."
        raise ConditionInvalid(detail, token.start)


def _type(token: Token | None) -> TokenType | None:
    return None if token is None else token.token_type


def _neighbours(
    tokens: Sequence[Token],
) -> Iterator[tuple[Token | None, Token, Token | None]]:
    return zip((None, *tokens), tokens, (*tokens[1:], None), strict=False)


def _check_order(tokens: Sequence[Token]) -> None:
    for before, token, after in _neighbours(tokens):
        if token.token_type is TokenType.COMMA:
            _check_comma(before, token, after)
        elif token.token_type is TokenType.DOT:
            _check_dot(before, token, after)
        elif token.token_type is TokenType.EXISTS and _type(after) is not TokenType.L_PAREN:
            raise ConditionInvalid("EXISTS takes a name in parentheses.", token.start)
        elif token.token_type is TokenType.L_PAREN and _type(after) is TokenType.R_PAREN:
            raise ConditionInvalid("A value is missing in the parentheses.", token.start)
        elif after is not None and token.token_type in _SUBJECTS:
            _check_successor(token, after)


def _check_comma(before: Token | None, token: Token, after: Token | None) -> None:
    if _type(before) in _OPENINGS or _type(after) in _CLOSINGS:
        raise ConditionInvalid("A value is missing beside the comma.", token.start)


def _check_dot(before: Token | None, token: Token, after: Token | None) -> None:
    if _type(before) not in _NAMES or _type(after) not in _NAMES:
        detail = "A dot stands between two names; quote a name that is a number or a keyword."
        raise ConditionInvalid(detail, token.start)


def _check_successor(token: Token, after: Token) -> None:
    word = token.text.upper()
    is_word = token.token_type is TokenType.VAR
    if after.token_type not in _BEGINNINGS:
        return
    if is_word and word in _STATEMENTS:
        detail = f"Statements and sub-queries are not supported: '{word}'."
    elif is_word and word == "CASE":
        detail = "CASE is not supported."
    elif is_word and after.token_type is TokenType.L_PAREN:
        detail = f"Functions are not supported: '{token.text}'."
    else:
        raise ConditionInvalid(f"An operator is missing before '{after.text}'.", after.start)
    raise ConditionInvalid(detail, token.start)


def _check_nesting(tokens: Sequence[Token]) -> None:
    """Bound the recursion of the parser: open parentheses, and prefixes in a row."""
    depth = prefixes = 0
    for token in tokens:
        if token.token_type is TokenType.L_PAREN:
            depth += 1
        elif token.token_type is TokenType.R_PAREN:
            depth -= 1
        is_prefix = token.token_type in _PREFIXES
        prefixes = prefixes + 1 if is_prefix else prefixes * (token.token_type is TokenType.L_PAREN)
        if depth + prefixes > limits.WHERE_NESTING_MAX:
            detail = f"A condition has at most {limits.WHERE_NESTING_MAX} levels of parentheses."
            raise ConditionInvalid(detail, token.start)
