"""Terraform's AWS provider applies the configuration of docs/how-to/terraform.md."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.documentation import DOCS, EXAMPLE_URL, blocks

PLUGINS = Path("/opt/tf-plugins")
"""Mirror of providers on this machine."""


@pytest.fixture
def folder(service_url: str, tmp_path: Path) -> Path:
    """A working directory with the page's configuration and the provider."""
    if shutil.which("terraform") is None or not PLUGINS.is_dir():
        pytest.skip("terraform and its AWS provider are not here")
    [page] = [
        block.text for block in blocks(DOCS / "how-to" / "terraform.md") if block.language == "hcl"
    ]
    (tmp_path / "main.tf").write_text(page.replace(EXAMPLE_URL, service_url))
    terraform(tmp_path, "init", f"-plugin-dir={PLUGINS}")
    return tmp_path


def terraform(folder: Path, *arguments: str) -> str:
    """Return the output of a command that succeeds."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TF_")}
    done = subprocess.run(
        ["terraform", arguments[0], "-no-color", *arguments[1:]],
        cwd=folder,
        env={**environment, "CHECKPOINT_DISABLE": "1"},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.chaos
def test_terraform_creates_changes_and_destroys(folder, client):
    terraform(folder, "apply", "-auto-approve")
    terraform(folder, "plan", "-detailed-exitcode")  # fails if there is a difference
    emails = client.get("/v1/queues/tf-emails").json()
    assert (emails["visibility_timeout_seconds"], emails["tags"]) == (60, {"team": "shop"})
    assert emails["dead_letters"] == {"queue": "tf-emails-dead", "topic": None, "receives_max": 5}

    main = folder / "main.tf"
    text = main.read_text().replace("_seconds = 60", "_seconds = 90")
    main.write_text(text.replace("= 2\n", "= 3\n").replace("= 48\n", "= 24\n"))
    changed = terraform(folder, "apply", "-auto-approve")
    assert "0 added, 2 changed, 0 destroyed" in changed
    terraform(folder, "plan", "-detailed-exitcode")

    terraform(folder, "destroy", "-auto-approve")
    assert client.get("/v1/queues/tf-emails").status_code == 404
    assert client.get("/v1/streams/tf-clicks").status_code == 404
