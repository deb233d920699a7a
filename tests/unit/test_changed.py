"""Selection of unit tests by `make fast`."""

from pathlib import Path

import pytest

from tests.changed import module_of, select_tests


@pytest.mark.parametrize(
    ("path", "module"),
    [
        ("storage/domain/clock.py", "storage.domain.clock"),
        ("api/cli/__init__.py", "api.cli"),
        ("openapi/sdk/python/millstream_client/errors.py", "millstream_client.errors"),
    ],
)
def test_module_name_is_derived_from_path(path, module):
    assert module_of(Path(path)) == module


def test_module_selects_importers_and_mirrored_folder():
    selected = select_tests(["storage/queues/engine.py", "api/cli/up/supervisor.py"])

    assert "tests/unit/cli" in selected
    assert "tests/unit/test_language.py" in selected
    assert not any(test.startswith("tests/unit/cli/") for test in selected)


def test_changed_test_selects_itself():
    assert select_tests(["tests/unit/test_changed.py"]) == ["tests/unit/test_changed.py"]


def test_page_selects_tests_for_pages():
    assert select_tests(["docs/README.md"]) == [
        "tests/unit/test_documentation.py",
        "tests/unit/test_wording.py",
    ]


def test_integration_test_selects_no_unit_test():
    assert select_tests(["tests/integration/queues/test_verbs.py"]) == []
