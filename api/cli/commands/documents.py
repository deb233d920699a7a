"""API documents and version."""

import json
from pathlib import Path
from typing import Annotated

import typer

from api.cli.shell.terminal import noun

documents = noun()


@documents.command()
def openapi() -> None:
    """Print the OpenAPI document of the REST API."""
    from api.app import create_app

    typer.echo(json.dumps(create_app().openapi(), indent=2, ensure_ascii=False))


@documents.command()
def asyncapi() -> None:
    """Print the AsyncAPI document of WebSockets."""
    from api.spec.asyncapi import build_asyncapi

    typer.echo(json.dumps(build_asyncapi(), indent=2, ensure_ascii=False))


@documents.command(hidden=True)
def reference(
    context: typer.Context,
    folder: Annotated[Path, typer.Argument(help="Directory to write to.", exists=True)],
) -> None:
    """Write the generated reference pages of the documentation."""
    from api.cli.reference.generator import write_pages

    write_pages(folder, context.find_root().command)


@documents.command()
def version() -> None:
    """Print the version."""
    from importlib.metadata import version as version_of

    typer.echo(version_of("millstream"))
