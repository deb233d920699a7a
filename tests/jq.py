"""The subset of jq that the examples use, for machines without jq: `-r`, paths, `select`."""

import json
import re
import sys
from collections.abc import Iterator
from typing import Any


def resolve(value: Any, path: str) -> Iterator[Any]:
    """Resolve paths of `.name`, `.[0]` and `.[]` steps, and `select(.name == "text")` between them."""
    first, pipe, then = path.partition(" | ")
    if pipe:
        for item in resolve(value, first):
            yield from resolve(item, then)
        return
    if equal := re.fullmatch(r'select\((?P<path>\S+) == "(?P<text>[^"]*)"\)', path):
        yield from (value,) if list(resolve(value, equal["path"])) == [equal["text"]] else ()
        return
    step = re.match(r"\.?(?:\[(?P<index>\d*)\]|(?P<name>\w+))", path)
    if step is None:
        assert path in ("", "."), f"this jq does not know '{path}'"
        yield value
        return
    rest = path[step.end() :]
    if step["name"]:
        yield from resolve(value[step["name"]], rest)
    elif step["index"]:
        yield from resolve(value[int(step["index"])], rest)
    else:
        for item in value:
            yield from resolve(item, rest)


def main() -> None:
    """Apply the path to each value of standard input."""
    *options, path = sys.argv[1:]
    text, decoder = sys.stdin.read(), json.JSONDecoder()
    while text := text.lstrip():
        value, end = decoder.raw_decode(text)
        text = text[end:]
        for item in resolve(value, path):
            plain = isinstance(item, str) and "-r" in options
            sys.stdout.write(f"{item if plain else json.dumps(item)}\n")


if __name__ == "__main__":
    main()
