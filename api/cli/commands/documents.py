"""What describes the service: its documents and its version."""

import json
from importlib import metadata

import typer

from api.cli.terminal import noun

documents = noun("What describes the service.")


@documents.command()
def openapi() -> None:
    """Print the OpenAPI document of the REST API."""
    from api.app import create_app

    typer.echo(json.dumps(create_app().openapi(), indent=2, ensure_ascii=False))


@documents.command()
def asyncapi() -> None:
    """Print the AsyncAPI document of the WebSocket endpoint."""
    from api.asyncapi import build_asyncapi

    typer.echo(json.dumps(build_asyncapi(), indent=2, ensure_ascii=False))


@documents.command()
def version() -> None:
    """Print the version."""
    typer.echo(metadata.version("millstream"))
