"""Lock files: every direct and indirect dependency with its version and SHA-256 digests.

    python -m docs.supply.locks --uv UV [--upgrade]  resolve again; locked versions are kept where possible
    python -m docs.supply.locks                      check offline that pyproject.toml, pins, locks and installed
    packages agree

requirements.lock contains the dependencies of the app except torch. requirements-torch.lock contains torch as the
registry serves it (on Linux with CUDA) and the dependencies of that build. requirements-dev.lock contains the
additional dependencies of tests and checks. The locks hold for all systems and Python 3.11 or newer. torch has its own
file because its CPU builds come from other indexes, with other digests.
"""

from __future__ import annotations

import argparse
import itertools
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[2]
APP, TORCH, DEVELOPMENT = "requirements.lock", "requirements-torch.lock", "requirements-dev.lock"
# extras that neither the app nor a local run needs; they are locked with the dependencies of the tests
ENGINES = ("ray", "slurm", "backbones")
HEADS = {
    APP: "Dependencies of the app, except torch. Made by `make lock`; install with pip --require-hashes --no-deps.",
    TORCH: "torch as the registry serves it, and dependencies of that build. Made by `make lock`.",
    DEVELOPMENT: "Additional dependencies of tests and checks. Made by `make lock`.",
}
_PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^ \\;]+)")
_DIGEST = re.compile(r"--hash=sha256:([0-9a-f]{64})\b")


@dataclass(frozen=True)
class Locked:
    """Locked package: normalised name, version, SHA-256 digests of its files, and its text in the lock file."""

    name: str
    version: str
    digests: tuple[str, ...]
    lines: str


def parse(text: str) -> Iterator[Locked]:
    """Yield the packages of a lock file, given its contents, in their order in the file."""
    for block in re.split(r"\n(?=[A-Za-z0-9])", text):
        if pin := _PIN.match(block):
            yield Locked(canonicalize_name(pin[1]), pin[2], tuple(_DIGEST.findall(block)), block.rstrip() + "\n")


def read(name: str, root: Path = ROOT) -> dict[str, Locked]:
    """Read a lock file; return its packages by name."""
    return {package.name: package for package in parse((root / name).read_text())}


def requirements(name: str, root: Path = ROOT) -> Iterator[Requirement]:
    """Yield the requirements listed in a requirements file itself, not those in files that it includes."""
    for line in (root / name).read_text().splitlines():
        words = line.partition("#")[0].strip()
        if words and not words.startswith("-"):
            yield Requirement(words)


def resolve(uv: str, *, upgrade: bool, root: Path = ROOT) -> None:
    """Resolve the requirements with uv, without downloading packages, and write the three lock files.

    If `upgrade`, use the newest versions; otherwise keep locked versions where possible.
    """
    locked = {**_known(APP, root), **_known(TORCH, root), **_known(DEVELOPMENT, root)}
    everything = _compiled(uv, root / "requirements-dev.txt", locked.values(), upgrade)
    app = _compiled(uv, root / "requirements.txt", everything.values(), False)
    without = [r for r in requirements("requirements.txt", root) if canonicalize_name(r.name) != "torch"]
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        # Add the packages that every build of torch needs, so that they remain in the lock file of the app. They are
        # read from the metadata of a CPU build.
        file.write("\n".join(str(r) for r in [*without, *_of_any_torch()]) + "\n")
        file.flush()
        bare = _compiled(uv, Path(file.name), app.values(), False)
    parts = {
        APP: [p for p in app.values() if p.name in bare],
        TORCH: [p for p in app.values() if p.name not in bare],
        DEVELOPMENT: [p for p in everything.values() if p.name not in app],
    }
    for name, packages in parts.items():
        text = "".join(p.lines for p in sorted(packages, key=lambda p: p.name))
        (root / name).write_text(f"# {HEADS[name]}\n{text}")
        print(f"{name}: {len(packages)} packages")


def problems(root: Path = ROOT) -> list[str]:
    """Return one sentence per error in the lock files that can be found offline; [] if there is none."""
    locks = {name: read(name, root) for name in HEADS}
    together = {**locks[DEVELOPMENT], **locks[TORCH], **locks[APP]}
    wrong = [f"{name}: {p.name} has no digest" for name, lock in locks.items() for p in lock.values() if not p.digests]
    for file, allowed in (
        ("requirements.txt", {**locks[APP], **locks[TORCH]}),
        ("requirements-dev.txt", together),
    ):
        for wanted in requirements(file, root):
            package = allowed.get(canonicalize_name(wanted.name))
            if package is None or not wanted.specifier.contains(package.version):
                has = f"has {package.version}" if package else "lacks it"
                wrong.append(f"{file} asks for {wanted}, the lock {has}; run make lock")
    wrong += [problem for file in _declared(root) for problem in _undeclared(file, root)]
    for name, needed_by in needed(
        [*requirements("requirements.txt", root), *requirements("requirements-dev.txt", root)]
    ):
        if name not in together:
            wrong.append(f"{name}, which {needed_by} needs, is in no lock; run make lock")
    for name, package in together.items():
        version = _installed(name)
        if version and Version(version).public != Version(package.version).public:
            wrong.append(f"{name} {version} is installed, the lock has {package.version}; run make run or make test")
    return wrong


def _declared(root: Path) -> dict[str, list[Requirement]]:
    """Return the requirements of pyproject.toml, grouped by the requirements file that pins them."""
    project = tomllib.loads((root / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"]
    chosen = itertools.chain.from_iterable(lines for name, lines in extras.items() if name not in ENGINES)
    app = [Requirement(line) for line in (*project["project"]["dependencies"], *chosen)]
    engines = itertools.chain.from_iterable(lines for name, lines in extras.items() if name in ENGINES)
    return {
        "requirements.txt": [wanted for wanted in app if wanted.name != project["project"]["name"]],
        "requirements-dev.txt": [Requirement(line) for line in (*project["dependency-groups"]["dev"], *engines)],
    }


def _undeclared(file: str, root: Path) -> Iterator[str]:
    """Yield one sentence per difference between the pins in a requirements file and pyproject.toml."""
    pinned = {canonicalize_name(wanted.name): wanted for wanted in requirements(file, root)}
    declared = {canonicalize_name(wanted.name): wanted for wanted in _declared(root)[file]}
    for name in sorted(pinned.keys() ^ declared.keys()):
        yield f"{name} is only in {file if name in pinned else 'pyproject.toml'}"
    for name in sorted(pinned.keys() & declared.keys()):
        allowed, pin = declared[name], next(iter(pinned[name].specifier))
        if not allowed.specifier.contains(pin.version) or allowed.extras != pinned[name].extras:
            yield f"{file} pins {pinned[name]}, pyproject.toml allows {allowed}"


def needed(wanted: Iterable[Requirement]) -> Iterator[tuple[str, str]]:
    """Yield (dependency, package that needs it) for all direct and indirect dependencies of the requirements `wanted`.

    They are read from the metadata of the packages installed on this machine.
    """
    seen: set[tuple[str, frozenset[str]]] = set()
    waiting = [(requirement, "the project") for requirement in wanted]
    while waiting:
        requirement, needed_by = waiting.pop()
        name = canonicalize_name(requirement.name)
        extras = frozenset(requirement.extras)
        if (name, extras) in seen:
            continue
        seen.add((name, extras))
        yield name, needed_by
        try:
            lines = metadata.requires(name) or []
        except metadata.PackageNotFoundError:
            continue
        for line in lines:
            further = Requirement(line)
            if further.marker is None or any(further.marker.evaluate({"extra": e}) for e in ("", *extras)):
                waiting.append((further, name))


def _of_any_torch() -> list[Requirement]:
    needs = [Requirement(line) for line in metadata.requires("torch") or []]
    accelerator = re.compile(r"nvidia|cuda|triton|rocm|xpu|onemkl|intel")
    return [r for r in needs if not accelerator.search(r.name) and (r.marker is None or "extra" not in str(r.marker))]


def _known(name: str, root: Path) -> dict[str, Locked]:
    return read(name, root) if (root / name).is_file() else {}


def _compiled(uv: str, wanted: Path, prefer: Iterable[Locked], upgrade: bool) -> dict[str, Locked]:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.txt"
        # make uv keep the locked versions: it prefers the versions that it finds in the output file
        out.write_text("".join(package.lines for package in prefer))
        options = ["--universal", "--python-version", "3.11", "--generate-hashes", "--no-annotate", "--no-header"]
        command = [uv, "pip", "compile", "--no-config", "--quiet", *options, str(wanted), "--output-file", str(out)]
        subprocess.run([*command, *(["--upgrade"] if upgrade else [])], check=True, cwd=ROOT, env=os.environ)
        pins = list(parse(out.read_text()))
    if twice := {p.name for p in pins if sum(p.name == other.name for other in pins) > 1}:
        sys.exit(f"uv locks several versions, one per system, of {', '.join(twice)}: pin one of them")
    return {package.name: package for package in pins}


def _installed(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def main() -> int:
    """Resolve or check the locks; return 0 if there are no errors."""
    parser = argparse.ArgumentParser(prog="python -m docs.supply.locks", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--uv", help="command of uv; resolve the locks again")
    parser.add_argument("--upgrade", action="store_true", help="take the newest versions that the requirements allow")
    asked = parser.parse_args()
    if asked.uv:
        resolve(asked.uv, upgrade=asked.upgrade)
    wrong = problems()
    print("\n".join(wrong) or "the locks match the requirements and the installed packages")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
