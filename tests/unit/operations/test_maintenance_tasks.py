"""Maintenance tasks: the list that the scheduler runs."""

from consumers.maintenance.scheduler import TASKS


def test_maintenance_task_names_are_unique():
    """A task's name is its advisory lock: two of one name would exclude each other."""
    names = [task.name for task in TASKS]

    assert len(set(names)) == len(names)
