"""`edit` of a definition: its settings as YAML in the user's editor.

What the editor leaves is validated by a dry run, shown as a difference, and stored if nobody else changed the definition.
"""

import os
import shlex
import subprocess
import tempfile
from pathlib import Path

import typer

from api.cli.config.process_settings import environment
from api.cli.errors import CliError, ExitCode
from api.cli.manifests.documents import ManifestDocument, parse_settings
from api.cli.manifests.kinds import DefinitionKind, etag_of
from api.cli.manifests.yaml_values import InvalidDocument, dump
from api.cli.shell.output import Row, describe_change
from api.cli.shell.terminal import Terminal

EDITORS = ("VISUAL", "EDITOR")
EDITOR_DEFAULT = "vi"
MARK = "#: "  # begins the lines that are not the user's
HEADER = """\
{title}: settings as in the REST API. Save and leave the editor to store them.
Without a change, nothing is stored. A setting that you delete takes its default.
"""


class DefinitionEditor:
    """One edit of a definition, until it is stored or given up."""

    def __init__(self, cli: Terminal, kind: DefinitionKind, name: str) -> None:
        self._cli = cli
        self._kind = kind
        self._definition = kind.get(cli, name)
        self._title = f"{kind.name} {name}"
        self._name = name
        descriptor, path = tempfile.mkstemp(prefix=f"millstream-{kind.name}-", suffix=".yaml")
        os.close(descriptor)
        self._path = Path(path)

    def run(self, *, yes: bool) -> None:
        """Edit until the settings are valid, and store them. Raises CliError."""
        rejected = settings = dump(self._kind.settings_of(self._definition))
        text = self._edited(HEADER.format(title=self._title), settings)
        while text != rejected:
            if not (faults := self._faults()):
                self._store(yes=yes)
                return
            rejected, text = text, self._edited(self._note(faults), text)
        self._path.unlink()
        if rejected != settings:
            raise CliError("nothing was stored")
        self._cli.out.done(f"{self._title.capitalize()} was not changed.", self._definition)

    def _edited(self, header: str, text: str) -> str:
        """Return what the editor leaves, without our lines."""
        notes = "".join(f"{MARK}{line}\n" for line in header.splitlines())
        self._path.write_text(notes + text)
        try:
            _open_editor(self._path)
        except CliError:
            self._path.unlink()
            raise
        lines = self._path.read_text().splitlines(keepends=True)
        return "".join(line for line in lines if not line.startswith(MARK.rstrip()))

    def _document(self) -> ManifestDocument:
        return parse_settings(self._path.read_text(), str(self._path), self._kind.name, self._name)

    def _faults(self) -> list[str]:
        """Return the faults of the settings, by a dry run."""
        from api.cli.manifests.faults import faults_of
        from millstream_client.errors import BadRequest, Conflict

        try:
            document = self._document()
            self._put(document, dry_run=True)
        except InvalidDocument as error:
            return list(error.args)
        except (BadRequest, Conflict) as error:
            return faults_of(document, error)
        return []

    def _note(self, faults: list[str]) -> str:
        """Return a header for the next attempt. Raises CliError if nobody can make one."""
        text = "\n".join(faults)
        if not self._cli.is_for_a_person:
            raise CliError(f"{text}\nYour text is in {self._path}.", ExitCode.USAGE)
        return f"{text}\nNothing was stored. Correct this, or leave it unchanged to give up.\n"

    def _store(self, *, yes: bool) -> None:
        document = self._document()
        self._show_changes(self._put(document, dry_run=True)["changes"])
        if not yes and self._cli.is_for_a_person and not typer.confirm("Store?", True, err=True):
            raise CliError(f"nothing was stored. Your text is in {self._path}.")
        stored = self._put(document)
        self._path.unlink()
        self._cli.out.done(f"Updated {self._title}.", stored)

    def _put(self, document: ManifestDocument, *, dry_run: bool = False) -> Row:
        from millstream_client.errors import PreconditionFailed

        version = etag_of(self._definition)
        try:
            return self._kind.put(
                self._cli, self._name, document.spec, dry_run=dry_run, if_match=version
            )
        except PreconditionFailed:
            raise CliError(
                f"{self._title} was changed by someone else meanwhile, so nothing was stored. Your text is in {self._path}."
            ) from None

    def _show_changes(self, changes: list[Row]) -> None:
        for change in changes:
            self._cli.print_notice(describe_change(change))


def _open_editor(path: Path) -> None:
    """Run the user's editor on a file and wait for it. Raises CliError."""
    variables = environment()
    command = next((variables[name] for name in EDITORS if variables.get(name)), EDITOR_DEFAULT)
    try:
        words = [*shlex.split(command), str(path)]
        code = subprocess.run(words, check=False).returncode  # noqa: S603  the user's own editor
    except OSError as error:
        raise CliError(f"cannot run the editor {command!r}: {error.strerror}; set EDITOR") from None
    if code:
        raise CliError(f"the editor {command!r} failed ({code}), so nothing was stored")
