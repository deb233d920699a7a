"""The subset of jq that the examples use, for machines without jq: `-r` and paths."""

import json
import re
import sys
from collections.abc import Iterator
from typing import Any


def found(value: Any, path: str) -> Iterator[Any]:
    """Resolve a path of `.name`, `.[0]` and `.[]` steps."""
    step = re.match(r"\.?(?:\[(?P<index>\d*)\]|(?P<name>\w+))", path)
    if step is None:
        assert path in ("", "."), f"this jq does not know '{path}'"
        yield value
        return
    rest = path[step.end() :]
    if step["name"]:
        yield from found(value[step["name"]], rest)
    elif step["index"]:
        yield from found(value[int(step["index"])], rest)
    else:
        for one in value:
            yield from found(one, rest)


def main() -> None:
    """Apply the path to each value of standard input."""
    *options, path = sys.argv[1:]
    text, decoder = sys.stdin.read(), json.JSONDecoder()
    while text := text.lstrip():
        value, end = decoder.raw_decode(text)
        text = text[end:]
        for one in found(value, path):
            plain = isinstance(one, str) and "-r" in options
            sys.stdout.write(f"{one if plain else json.dumps(one)}\n")


if __name__ == "__main__":
    main()
