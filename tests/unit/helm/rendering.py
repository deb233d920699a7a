"""Rendering of the chart: `python -m tests.unit.helm.rendering helm` writes the fixtures."""

import hashlib
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
CHART = ROOT / "deploy" / "helm" / "millstream"
RENDERED = Path(__file__).parent / "rendered"
VALUES = {
    "defaults": None,
    "everything": Path(__file__).with_name("everything.yaml"),
    "executors": Path(__file__).with_name("executors.yaml"),
    "stores": Path(__file__).with_name("stores.yaml"),
}
KUBERNETES = "1.34.0"


def digest_of(case: str) -> str:
    """Digest of every file of the chart, and of the values."""
    values = VALUES[case]
    made_of = [
        *sorted(path for path in CHART.rglob("*") if path.is_file()),
        *([values] if values else []),
    ]
    digest = hashlib.sha256()
    for path in made_of:
        digest.update(f"{path.relative_to(ROOT)}\n".encode() + path.read_bytes())
    return f"made of {digest.hexdigest()}"


def render(case: str, helm: str) -> str:
    """Render the chart with these values."""
    values = VALUES[case]
    command = [*helm.split(), "template", "mill", str(CHART), "--kube-version", KUBERNETES]
    done = subprocess.run(
        [*command, *(["--values", str(values)] if values else [])],
        capture_output=True,
        text=True,
        check=True,
    )
    return f"# {digest_of(case)}\n{done.stdout}"


def main() -> None:
    """Render every case."""
    RENDERED.mkdir(exist_ok=True)
    for case in VALUES:
        (RENDERED / f"{case}.yaml").write_text(render(case, sys.argv[1]))


if __name__ == "__main__":
    main()
