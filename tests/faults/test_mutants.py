"""The list of mutants fits the sources, and who runs it tells a killed one from a survivor."""

import subprocess
from collections import Counter

from tests.faults import mutants
from tests.members import in_one_case

LIST = mutants.read()


@in_one_case(mutant=LIST)
def test_an_entry_still_fits_the_sources(mutant):
    mutant.applied(mutants.ROOT)
    assert mutant.tests, "names no test"
    for test in mutant.tests:
        file, _, names = test.partition("::")
        source = (mutants.ROOT / file).read_text()
        for name in names.split("::"):
            bare = name.partition("[")[0]
            assert not bare or f"def {bare}(" in source or f"class {bare}" in source, f"{test} is not there"


def test_no_two_entries_have_one_name():
    assert not [name for name, times in Counter(mutant.name for mutant in LIST).items() if times > 1]


ENTRY = """
[[mutant]]
name = "{name}"
file = "halves.py"
find = '''{find}'''
replace = '''{replace}'''
tests = ["test_halves.py::{test}"]
"""


def test_the_runner_tells_a_killed_mutant_from_a_survivor_and_from_an_entry_that_shows_nothing(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # they take longer to load than everything here
    tree = tmp_path / "tree"
    (tree / "lists").mkdir(parents=True)
    (tree / "halves.py").write_text("def halves(n):\n    if n % 2:\n        raise ValueError(n)\n    return n // 2\n")
    (tree / "test_halves.py").write_text(
        "import pytest\nfrom halves import halves\n\n\ndef test_even():\n    assert halves(4) == 2\n\n\n"
        "def test_odd():\n    with pytest.raises(ValueError, match='3'):\n        halves(3)\n\n\n"
        "@pytest.mark.skip\ndef test_nothing():\n    pass\n"
    )
    (tree / "pyproject.toml").write_text("[tool.pytest.ini_options]\npythonpath = ['.']\n")
    subprocess.run(["git", "init", "-q", str(tree)], check=True)
    check, away = "if n % 2:", "if False:"
    entries = [
        ENTRY.format(name="caught", find=check, replace=away, test="test_odd"),
        ENTRY.format(name="unnoticed", find=check, replace=away, test="test_even"),
        ENTRY.format(name="excused", find=check, replace=away, test="test_even") + "survives = 'one may do without'\n",
        ENTRY.format(name="skipped", find=check, replace=away, test="test_nothing"),
        ENTRY.format(name="rotten", find="if n % 3:", replace=away, test="test_odd"),
        ENTRY.format(name="broken", find="def halves", replace="def parts", test="test_odd"),
    ]
    (tree / "lists" / "some.toml").write_text("".join(entries))

    assert mutants.main([], root=tree, lists=tree / "lists") == 1
    rows = [line.split(" | ") for line in capsys.readouterr().out.splitlines() if line.startswith("| some | ")]
    assert {row[1]: row[2] for row in rows} == {
        "caught": "killed",
        "unnoticed": "survived",
        "excused": "explained",
        "skipped": "error",
        "rotten": "error",
        "broken": "error",
    }
    assert rows[0][3].startswith("test_halves.py::test_odd: ")
    assert (tree / "halves.py").read_text().count(check) == 1

    assert mutants.main(["--only", "caught"], root=tree, lists=tree / "lists") == 0
