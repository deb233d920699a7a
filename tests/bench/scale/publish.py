"""Publish results in docs/performance.md: tables between its marks, and plots."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.bench.scale.curves import Curve, described
from tests.bench.scale.plots import svg

DOCS = Path(__file__).parents[3] / "docs"
PAGE = DOCS / "performance.md"
IMAGES = DOCS / "images" / "performance"
_MARK = re.compile(r"<!-- curve: ([\w-]+) -->\n.*?<!-- end -->", re.DOTALL)


def publish(machine: Mapping[str, Any], started_at: str, curves: Sequence[Curve]) -> None:
    """Write the plots of these curves, and their tables where the page has marks."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    for curve in curves:
        if not curve.trouble:
            (IMAGES / f"{curve.name}.svg").write_text(svg(curve))
    PAGE.write_text(with_tables(PAGE.read_text(), curves, when(machine, started_at)))


def publish_text(name: str, text: str) -> None:
    """Write other text where the page has a mark of that name."""
    PAGE.write_text(with_texts(PAGE.read_text(), {name: text}))


def with_tables(page: str, curves: Iterable[Curve], when: str) -> str:
    """Return the page with these curves between its marks; others are unchanged."""
    return with_texts(page, {curve.name: _text(curve, when) for curve in curves})


def with_texts(page: str, texts: Mapping[str, str]) -> str:
    """Return the page with these texts between its marks."""

    def text(mark: re.Match[str]) -> str:
        name = mark[1]
        return f"<!-- curve: {name} -->\n{texts[name]}<!-- end -->" if name in texts else mark[0]

    return _MARK.sub(text, page)


def _text(curve: Curve, when: str) -> str:
    picture = f"![{curve.title}](images/performance/{curve.name}.svg)\n\n"
    return f"{'' if curve.trouble else picture}{described(curve)}\n*{when}*\n"


def when(machine: Mapping[str, Any], started_at: str) -> str:
    """Time and machine of the measurement."""
    valkey = re.search(r"v=([\d.]+)", machine["valkey"])
    return (
        f"{started_at[:10]}, {machine['processor']}, {machine['cores']} cores shared with other work, load "
        f"{machine['load_average_at_start']} at the start, Valkey {valkey[1] if valkey else 'unknown'}"
    )
