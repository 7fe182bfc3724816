"""Installed packages equal the locked ones: lock files, licences, bill of materials."""

import json
import re
from functools import cache
from importlib import metadata

import pytest
from packaging.utils import canonicalize_name

from docs.supply import licences, locks, lower_bounds, sbom

FOUND = cache(metadata.Distribution.from_name)
READ = cache(metadata.Distribution.metadata.fget)  # type: ignore[attr-defined]


@pytest.fixture(autouse=True)
def what_packages_say_is_read_once(monkeypatch):
    """Cache metadata of installed packages: a hundred packages are parsed ten times, two thirds of the time."""
    monkeypatch.setattr(metadata.Distribution, "from_name", FOUND)
    monkeypatch.setattr(metadata.Distribution, "metadata", property(READ))


def test_the_locks_fit_the_requirements_and_hold_all_that_is_needed():
    assert locks.problems() == []


def test_only_streamlit_has_an_upper_bound_and_torch_and_the_arrays_keep_their_lowest_versions():
    declared = {wanted.name: wanted for lines in locks._declared(locks.ROOT).values() for wanted in lines}
    lowest = {"torch": "2.8", "numpy": "2.2", "scipy": "1.16", "scikit-learn": "1.7", "pillow": "12"}
    assert {name: str(declared[name].specifier) for name in lowest} == {n: f">={v}" for n, v in lowest.items()}
    capped = {name for name, wanted in declared.items() for s in wanted.specifier if s.operator != ">="}
    assert capped == {"streamlit"}


def test_the_tests_with_the_lowest_versions_are_those_of_every_package_of_the_library():
    folders = lower_bounds.folders()
    assert {"tests/losses", "tests/metrics", "tests/cli", "tests/training"} <= set(folders)
    assert not any(folder.startswith(("tests/pages", "tests/browser")) for folder in folders)
    pinned = {canonicalize_name(r.name) for r in locks.requirements("requirements-dev.txt")}
    assert pinned >= lower_bounds.TOOLS


def test_every_package_is_in_one_lock_with_a_digest_for_each_file():
    names = [name for lock in locks.HEADS for name in locks.read(lock)]
    assert len(names) == len(set(names))
    for lock in locks.HEADS:
        text = (locks.ROOT / lock).read_text()
        assert len(re.findall("^[a-z0-9].*==", text, re.M)) == len(locks.read(lock))
        assert "://" not in text  # any index may be used


@pytest.mark.parametrize(
    ("file", "find", "put", "said"),
    [
        ("requirements.txt", "numpy==2.4.6", "numpy==2.4.5", r"asks for numpy==2.4.5, the lock has 2.4.6"),
        ("requirements.txt", "typer==", "some-new-package==1.0\ntyper==", r"asks for some-new-package==1.0.*lacks it"),
        ("requirements.lock", "anyio==", "other-name==", r"anyio, which \S+ needs, is in no lock"),
        ("requirements.lock", "altair==6.3.0 \\\n    --hash=sha256:", "altair==6.3.0 \\\n    --hash=md5:", ""),
        ("requirements-dev.lock", "ruff==", "ruff==999.", r"requirements-dev.txt asks for ruff.*the lock has 999"),
        ("pyproject.toml", '"typer>=0.16",', "", r"typer is only in requirements.txt"),
        ("pyproject.toml", '"mypy",', '"mypy", "tox",', r"tox is only in pyproject.toml"),
        ("pyproject.toml", "numpy>=2.2", "numpy>=2.5", r"pins numpy==2.4.6, pyproject.toml allows numpy>=2.5"),
    ],
)
def test_a_lock_that_does_not_fit_is_named(tmp_path, file, find, put, said):
    for name in (*locks.HEADS, "requirements.txt", "requirements-dev.txt", "pyproject.toml"):
        (tmp_path / name).write_text((locks.ROOT / name).read_text())
    text = (tmp_path / file).read_text()
    assert find in text
    (tmp_path / file).write_text(text.replace(find, put, 1))
    if said:
        assert re.search(said, "\n".join(locks.problems(tmp_path)))
    else:
        (tmp_path / file).write_text(re.sub(r"(?<=altair==6.3.0)( \\\n +--hash=\S+)+", "", text))
        assert "requirements.lock: altair has no digest" in locks.problems(tmp_path)


def test_the_table_of_licences_is_that_of_the_locks():
    lines = licences.TABLE.read_text().splitlines()
    table = {line.split(" | ")[0].removeprefix("| "): line for line in lines if line.startswith("| ")}
    expected = licences.rows()
    assert table.keys() - {"package"} == expected.keys()
    for name, row in expected.items():
        version = metadata.version(name) if "not installed" not in row else None
        if version and version.partition("+")[0] == row.split(" | ")[1]:
            assert table[name] == row, "run make licences"


def test_the_bill_of_materials_holds_every_package_of_the_app_with_its_digests():
    bill = json.loads(json.dumps(sbom.bill()))
    app = {**locks.read(locks.APP), **locks.read(locks.TORCH)}
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    assert {c["name"]: c["version"] for c in bill["components"]} == {p.name: p.version for p in app.values()}
    for component in bill["components"]:
        hashes = {h["content"] for e in component["externalReferences"] for h in e["hashes"]}
        assert hashes == set(app[component["name"]].digests)
        assert component["licenses"]
    known = {c["bom-ref"] for c in bill["components"]} | {"dml-lab"}
    assert all({d["ref"], *d["dependsOn"]} <= known for d in bill["dependencies"])
    assert sbom.bill()["serialNumber"] == bill["serialNumber"]


def test_the_project_is_under_the_mit_licence():
    assert (locks.ROOT / "LICENSE").read_text().startswith("MIT License\n")


def test_the_image_installs_nothing_without_a_digest_and_its_base_can_be_pinned():
    text = (locks.ROOT / "Containerfile").read_text().replace("\\\n", " ")
    installs = re.findall(r"pip install[^&\n]*", "\n".join(line for line in text.splitlines() if line[:1] != "#"))
    assert len(installs) == 2
    assert all("--require-hashes" in words for words in installs)
    assert set(re.findall("^FROM (\\S+)", text, re.M)) == {"${PYTHON}"}


def test_every_lock_is_audited_each_week():
    makefile = (locks.ROOT / "Makefile").read_text()
    (audited,) = re.findall("^LOCKS = (.+)$", makefile, re.M)
    assert audited.split() == list(locks.HEADS)
    assert "--strict" in makefile.partition("\naudit:")[2].partition("\n\n")[0]  # otherwise unknown packages would pass
    workflow = (locks.ROOT / ".github" / "workflows" / "audit.yml").read_text()
    assert re.search(r'cron: "\d+ \d+ \* \* [0-6]"', workflow)
    assert "- run: make audit\n" in workflow
    assert all(re.fullmatch("[0-9a-f]{40}", pin) for pin in re.findall(r"uses: \S+@(\S+)", workflow))
