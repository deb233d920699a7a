"""Checks of pages whose output must have more than some sentences."""

import re


def check_groups(output: str) -> None:
    """Members share shards, and a repeated append and fetch return the same."""
    lines = [line for line in output.splitlines() if line.strip()]
    appended = [line for line in lines if '"duplicate"' in line]
    assert ['"duplicate":true' in line for line in appended] == [False, True]
    polls = [line for line in lines if '"token"' in line]
    assert polls[0] != polls[1]  # a new instance of the member; the records are the same
    for poll in polls[:2]:
        texts = re.findall(r'"data":"([^"]*)"', poll)
        assert texts in (["12.50", "7.00"], ["7.00", "12.50"])
    shares = [re.search(r'"shards":(\[[0-9,]*\])', line) for line in polls]
    assert [share[1] for share in shares if share][2:5] == ["[]", "[0,1]", "[2,3]"]
    assert '"dry_run":true' in output
    assert '"data":"12.50"' in polls[-1]


CHECKS = {"docs/how-to/groups.md": check_groups}
