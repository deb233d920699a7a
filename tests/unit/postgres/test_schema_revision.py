"""Schema revisions: the file names of the scripts agree with Alembic."""

from alembic.script import ScriptDirectory

from storage.postgres.schema_revision import MIGRATIONS, head, is_supported


def test_revisions_in_file_names_match_alembic():
    scripts = ScriptDirectory(str(MIGRATIONS))
    revisions = [script.revision for script in scripts.walk_revisions()]

    assert head() == scripts.get_current_head() == revisions[0]
    assert all(map(is_supported, revisions))
    assert not is_supported("9999")
