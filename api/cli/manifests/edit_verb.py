"""Verb `edit` of the nouns whose definitions are documents."""

from api.cli.manifests.kinds import KINDS
from api.cli.shell.definitions import Definition
from api.cli.shell.options import Yes
from api.cli.shell.terminal import Terminal, verb


def edit_verb(noun: Definition, *examples: str) -> None:
    """Register `edit`."""
    kind = KINDS[noun.label.lower()]

    def edit(cli: Terminal, /, name: str, yes: Yes = False) -> None:
        from api.cli.manifests.editor import DefinitionEditor

        DefinitionEditor(cli, kind, name).run(yes=yes)

    edit.__annotations__["name"] = noun.name
    edit.__doc__ = (
        f"Edit the settings of a {kind.name}.\n\n"
        "Opens $VISUAL or $EDITOR with the settings as YAML, shows what would change, and stores it unless someone else "
        "changed the settings meanwhile."
    )
    verb(noun.app, "edit", examples=examples)(edit)
