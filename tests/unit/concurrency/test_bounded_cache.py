"""Bounded caches: a new key makes no other unknown but the oldest, in the class and in its users."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from storage.concurrency.bounded_cache import BoundedCache
from storage.domain.access.permissions import Action, Effect, Grant, Policy

ROOT = Path(__file__).parents[3]
PRODUCT = ("api", "consumers", "spark_worker", "storage", "pyspark_millstream")


def test_new_entry_evicts_only_oldest_when_full():
    cache = BoundedCache[int, int](10_000)
    for key in range(10_001):
        cache[key] = key

    assert 0 not in cache
    assert len(cache) > 0.8 * 10_000
    assert all(key in cache for key in range(2_000, 10_001))


@pytest.mark.parametrize("size_max", [1, 2, 7, 8, 100])
def test_size_is_bounded_by_writes_and_updates(size_max):
    cache = BoundedCache[int, int](size_max)
    for key in range(3 * size_max):
        cache[key] = key
        assert len(cache) <= size_max
        assert key in cache
    cache.update({-key: key for key in range(1, 2 * size_max)})
    assert len(cache) <= size_max


def test_overwrite_evicts_nothing_when_full():
    cache = BoundedCache[str, int](2)
    cache["a"], cache["b"] = 1, 2
    cache["a"] = 3

    assert cache == {"a": 3, "b": 2}


def test_evicted_values_are_reported():
    evicted: list[int] = []
    cache = BoundedCache[str, int](2, evicted.append)
    cache["a"], cache["b"], cache["c"] = 1, 2, 3
    del cache["b"]
    cache.clear()

    assert evicted == [1]


def test_policy_decisions_survive_many_names():
    """The 4097th name made a policy forget all its decisions at once."""
    policy = Policy((Grant(Effect.ALLOW, ("queue:send",), ("*",)),))
    for number in range(4_097):
        policy.allows(Action.QUEUE_SEND, f"orders-{number}")

    assert policy.allows.cache_info().currsize == 4_096  # type: ignore[attr-defined]


def test_no_module_has_its_own_bounded_dictionary():
    """A full dictionary that is emptied makes all its keys unknown at the same time."""
    own = [
        f"{path.relative_to(ROOT)}:{line}"
        for package in PRODUCT
        for path in sorted((ROOT / package).rglob("*.py"))
        if any(
            word in (source := path.read_text()) for word in (".clear()", "popitem", "next(iter(")
        )
        for line in _evictions(ast.parse(source))
    ]

    assert own == []


def test_own_bounded_dictionaries_are_recognised():
    cleared = "if len(self._seen) >= MAX:\n    self._seen.clear()"
    first = "while len(seen) > MAX:\n    del seen[next(iter(seen))]"
    popped = "if len(self._seen) + len(new) > MAX:\n    self._seen.popitem(last=False)"
    for source in (cleared, first, popped):
        assert list(_evictions(ast.parse(source)))
    assert not list(_evictions(ast.parse("if len(lines) > MAX:\n    lines[0].clear()")))


def _evictions(tree: ast.Module) -> Iterator[int]:
    """Yield the lines that remove entries of a container under a condition on its length."""
    for branch in ast.walk(tree):
        if isinstance(branch, ast.If | ast.While):
            sized = {
                ast.unparse(call.args[0])
                for call in ast.walk(branch.test)
                if isinstance(call, ast.Call) and ast.unparse(call.func) == "len"
            }
            for statement in branch.body:
                for node in ast.walk(statement):
                    if any(_removes(node, container) for container in sized):
                        yield branch.lineno


def _removes(node: ast.AST, container: str) -> bool:
    if isinstance(node, ast.Call):
        return ast.unparse(node.func) in {f"{container}.clear", f"{container}.popitem"} or (
            ast.unparse(node).startswith(f"{container}.pop(next(iter(")
        )
    return isinstance(node, ast.Delete) and f"{container}[next(iter(" in ast.unparse(node)
