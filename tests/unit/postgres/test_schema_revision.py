"""Revisions are known by the names of their scripts, and alembic reads the same in them."""

from alembic.script import ScriptDirectory

from storage.postgres.schema_revision import MIGRATIONS, head, is_known


def test_what_the_names_say_is_what_alembic_knows():
    scripts = ScriptDirectory(str(MIGRATIONS))
    revisions = [script.revision for script in scripts.walk_revisions()]

    assert head() == scripts.get_current_head() == revisions[0]
    assert all(map(is_known, revisions))
    assert not is_known("9999")
