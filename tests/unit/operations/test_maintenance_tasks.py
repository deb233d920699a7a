"""Maintenance tasks: the list that the scheduler runs."""

from pathlib import Path

from consumers.maintenance.scheduler import TASKS

DECISION = Path(__file__).parents[3] / "docs/adr/0058-maintenance-by-elected-leaders.md"


def test_maintenance_task_names_are_unique():
    """Metrics, log events and isolated failures tell tasks apart by name."""
    names = [task.name for task in TASKS]

    assert len(set(names)) == len(names)


def test_decision_states_why_each_task_is_safe_beside_itself():
    named = {
        name.strip("` ")
        for line in DECISION.read_text().splitlines()
        if line.startswith("| `")
        for name in line.split("|")[1].split(",")
    }

    assert named == {task.name for task in TASKS}
