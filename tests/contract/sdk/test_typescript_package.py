"""The package of the TypeScript SDK, packed, installed in a project, imported, required and compiled."""

import json
from pathlib import Path

import pytest

from tests.javascript import compile_typescript, run

SDK = Path(__file__).parents[3] / "openapi" / "sdk" / "typescript"
SIZE_MAX = 384 * 1024
PROGRAM = """
const client = new sdk.Millstream();
console.log(JSON.stringify([client.url, typeof client.queue('orders').send, typeof calls.whoami, sdk.VERSION]));
console.log(new sdk.Lost(1000, 'bye') instanceof sdk.MillstreamError);
console.log(new MemoryService().client() instanceof sdk.Millstream);
"""
MODULES = {
    "program.mjs": "import * as sdk from 'millstream-client';\n"
    "import { MemoryService } from 'millstream-client/testing';\n"
    "import * as calls from 'millstream-client/calls';\n",
    "program.cjs": "const sdk = require('millstream-client');\n"
    "const { MemoryService } = require('millstream-client/testing');\n"
    "const calls = require('millstream-client/calls');\n",
}
STRICT = ["--strict", "--noUncheckedIndexedAccess", "--noEmit", "--target", "ES2022"]


@pytest.fixture(scope="module")
def tarball(tmp_path_factory):
    """The package as it is published."""
    compile_typescript(SDK)
    folder = tmp_path_factory.mktemp("packed")
    [packed] = json.loads(
        run(
            SDK,
            "npm",
            "pack",
            "--json",
            "--ignore-scripts",
            f"--pack-destination={folder}",
            seconds_max=60,
        )
    )
    return folder / packed["filename"]


@pytest.fixture(scope="module")
def project(tarball):
    """A project with the package."""
    folder = tarball.parent / "project"
    folder.mkdir()
    (folder / "package.json").write_text("{}")
    quiet = ["--offline", "--no-audit", "--no-fund", "--silent"]
    run(folder, "npm", "install", *quiet, tarball, seconds_max=60)
    return folder


@pytest.mark.parametrize("module", MODULES)
def test_package_is_imported_and_required(project, module):
    (project / module).write_text(MODULES[module] + PROGRAM)

    printed = run(project, "node", module, seconds_max=30).splitlines()

    version = json.loads((SDK / "package.json").read_text())["version"]
    assert json.loads(printed[0]) == ["http://127.0.0.1:8080", "function", "function", version]
    assert printed[1:3] == ["true", "true"]


@pytest.mark.parametrize("kind", ["mts", "cts"])
def test_programs_compile_in_strict_mode(project, kind):
    """With the declarations themselves, and without a library that the project would have to name."""
    program = project / f"usage.{kind}"
    program.write_text((SDK / "usage.mts").read_text())

    compiler = SDK / "node_modules" / ".bin" / "tsc"
    run(project, compiler, *STRICT, "--module", "NodeNext", program.name, seconds_max=100)


def test_package_is_small_and_has_no_dependencies(project, tarball):
    installed = [path.name for path in (project / "node_modules").iterdir() if path.name[0] != "."]

    assert installed == ["millstream-client"]
    assert tarball.stat().st_size < SIZE_MAX
