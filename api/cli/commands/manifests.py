"""`millstream apply`, `diff` and `export`: definitions as YAML documents."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from api.cli.errors import ExitCode
from api.cli.grammar.common_options import parsed_by
from api.cli.shell.options import Prefix
from api.cli.shell.output import Row, describe_change, table
from api.cli.shell.terminal import Terminal, noun, verb

if TYPE_CHECKING:
    from api.cli.manifests.documents import ManifestDocument
    from api.cli.manifests.reconciler import DocumentResult

manifests = noun()

RESULTS = table("kind", "name", "outcome")
DOCUMENTS = table("name", "kind")


def parse_kind(text: str) -> str:
    """Return the kind of a noun in singular or plural. Raises ValueError."""
    from api.cli.manifests.kinds import KINDS

    kinds = {name: kind.name for kind in KINDS.values() for name in (kind.name, kind.plural)}
    if text not in kinds:
        raise ValueError(f"{text!r} is not a kind: use {', '.join(KINDS)}")
    return kinds[text]


Files = Annotated[
    list[Path],
    typer.Option(
        "--file",
        "-f",
        metavar="PATH",
        help="File or folder of YAML documents, or - for standard input; repeat for more.",
    ),
]
Kinds = Annotated[
    list[Any] | None,
    typer.Argument(
        parser=parsed_by(parse_kind), metavar="KIND", help="Only these kinds, such as queues."
    ),
]


@verb(
    manifests,
    "apply",
    examples=["millstream apply -f definitions.yaml", "millstream apply -f deploy/ --dry-run"],
)
def apply(
    cli: Terminal,
    files: Files,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would change, without changing it.")
    ] = False,
) -> None:
    """Create or replace definitions from YAML.

    Repeating it changes nothing. Settings that a document leaves out take their defaults; secrets keep their values. If one
    object fails, the others are applied, and the exit code is 5.
    """
    from api.cli.manifests import reconciler
    from api.cli.manifests.documents import read_documents

    run = reconciler.compare if dry_run else reconciler.apply
    results = _report(cli, run(cli, read_documents(files)))
    reconciler.check_results(results)


@verb(manifests, "diff", examples=["millstream diff -f definitions.yaml"])
def diff(cli: Terminal, files: Files) -> None:
    """Compare definitions in YAML with the service.

    The exit code is 0 if they are the same, 1 if they differ, and more if they could not be compared.
    """
    from api.cli.manifests import reconciler
    from api.cli.manifests.documents import read_documents

    compared = reconciler.compare(cli, read_documents(files))
    results = _report(cli, compared, shows_unchanged=False)
    reconciler.check_results(results)
    if any(result.outcome is not reconciler.DocumentOutcome.UNCHANGED for result in results):
        raise typer.Exit(ExitCode.ERROR)


def _report(
    cli: Terminal, results: Iterable["DocumentResult"], *, shows_unchanged: bool = True
) -> list["DocumentResult"]:
    """Print results as they arrive, and return them."""
    reported: list[DocumentResult] = []

    def rows() -> Iterator[Row]:
        for result in results:
            reported.append(result)
            if cli.out.for_people and (shows_unchanged or result.outcome != "unchanged"):
                _print(cli, result)
            yield result.row()

    if cli.out.for_people:
        list(rows())
    else:
        cli.out.rows(rows(), RESULTS)
    return reported


def _print(cli: Terminal, result: "DocumentResult") -> None:
    """Print a result with its changes, and its errors on standard error."""
    for error in result.errors:
        typer.echo(error, err=True)
    if result.errors or cli.out.quiet:
        return
    cli.out.line(f"{result.document.title} {result.outcome}".encode())
    for change in result.changes:
        cli.out.line(f"  {describe_change(change)}".encode())


@verb(
    manifests,
    "export",
    examples=["millstream export > definitions.yaml", "millstream export queues streams"],
)
def export(cli: Terminal, kinds: Kinds = None, prefix: Prefix = "") -> None:
    """Print definitions as YAML.

    `apply` accepts the output. Secrets, such as the values of headers of webhooks, are not included.
    """
    from api.cli.manifests.documents import dump_document
    from api.cli.manifests.reconciler import in_dependency_order

    documents = in_dependency_order(_exported(cli, kinds or [], prefix))
    if cli.out.for_people and not cli.out.quiet:
        for document in documents:
            cli.out.write(f"---\n{dump_document(document)}".encode())
    else:
        cli.out.rows((document.members for document in documents), DOCUMENTS)


def _exported(cli: Terminal, kinds: list[str], prefix: str) -> Iterator["ManifestDocument"]:
    from api.cli.manifests.documents import ManifestDocument
    from api.cli.manifests.kinds import KINDS

    for kind in [KINDS[name] for name in kinds] or KINDS.values():
        for definition in kind.own(cli, prefix):
            yield ManifestDocument(kind.name, definition["name"], kind.settings_of(definition))
