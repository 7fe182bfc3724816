"""Table of the licences of all locked packages, as the packages state them: `python -m docs.supply.licences`."""

from __future__ import annotations

from importlib import metadata
from importlib.metadata import PackageMetadata
from pathlib import Path

from docs.supply import locks

TABLE = locks.ROOT / "docs" / "licences.md"
_NOT_HERE, _NOT_STATED = "not installed on the machine that wrote this", "not stated"
# Licence names as written by package authors, in lower case, and their SPDX identifiers.
_SPDX = {
    "3-clause bsd license": "BSD-3-Clause",
    "apache 2.0": "Apache-2.0",
    "apache license 2.0": "Apache-2.0",
    "apache license, version 2.0": "Apache-2.0",
    "apache software license": "Apache-2.0",
    "bsd": "BSD",
    "bsd license": "BSD",
    "bsd 3-clause license": "BSD-3-Clause",
    "isc license (iscl)": "ISC",
    "mit license": "MIT",
    "mozilla public license 2.0 (mpl 2.0)": "MPL-2.0",
    "new bsd": "BSD-3-Clause",
    "new bsd license": "BSD-3-Clause",
    "python software foundation license": "PSF-2.0",
}
_HEAD = """# Licences

DML Lab is under the MIT licence ([LICENSE](../LICENSE)). These packages are
not part of it; they are installed separately. Each row shows the licence that the package states. Written by
`make licences`:

"""
_TORCH = """
Two groups of packages are not in the table. The first are packages that only a build of torch with CUDA needs on Linux;
NVIDIA's libraries among them are under NVIDIA's own licences. The second are the checkers of JavaScript and CSS, which
only development needs; `package-lock.json` states their licences.
"""


def of(package: str) -> str:
    """Return the licence of an installed package, as an SPDX identifier if possible; otherwise why it is unknown."""
    try:
        stated = metadata.metadata(package)
    except metadata.PackageNotFoundError:
        return _NOT_HERE
    return _expression(stated) or _classified(stated) or _by_hand(stated) or _from_file(package) or _NOT_STATED


def is_spdx(licence: str) -> bool:
    """Return True if a result of `of` is an SPDX expression; False if it is other text or states why it is unknown."""
    return licence not in (_NOT_HERE, _NOT_STATED, "BSD") and "," not in licence


def _expression(stated: PackageMetadata) -> str:
    return str(stated["License-Expression"] or "")


def _classified(stated: PackageMetadata) -> str:
    names = [c.rpartition(" :: ")[2] for c in stated.get_all("Classifier") or () if c.startswith("License :: ")]
    # A package with several licence classifiers does not say if all of them apply or any one, so list all.
    return ", ".join(sorted({_spdx(name) for name in names if name != "OSI Approved"}))


def _by_hand(stated: PackageMetadata) -> str:
    text = str(stated["License"] or "").strip()
    if "Permission is hereby granted, free of charge, to any person" in text:
        return "MIT"
    first = text.partition("\n")[0].strip()
    return _spdx(first) if len(first) < 40 and first != "UNKNOWN" else ""


def _from_file(package: str) -> str:
    """Return "Apache-2.0" if a licence file of the package has the notice of that licence, else ""."""
    for file in metadata.files(package) or ():
        if file.stem.upper() in ("LICENSE", "LICENCE", "COPYING"):
            text = file.read_text() if Path(file.locate()).is_file() else ""
            if "Licensed under the Apache License, Version 2.0" in text:
                return "Apache-2.0"
    return ""


def _spdx(words: str) -> str:
    return _SPDX.get(words.lower(), words)


def rows() -> dict[str, str]:
    """Return one table row per locked package, by name, except packages that only a build of torch with CUDA needs."""
    app = locks.read(locks.APP)
    torch = {"torch": locks.read(locks.TORCH)["torch"]}
    development = locks.read(locks.DEVELOPMENT)
    return {
        name: f"| {name} | {package.version} | {of(name)} | {'tests' if name in development else 'the app'} |"
        for name, package in sorted({**app, **torch, **development}.items())
    }


def main() -> None:
    """Write the table; packages that are not installed here keep their previous row if the version is the same."""
    listed = rows()
    if TABLE.is_file():
        for line in TABLE.read_text().splitlines():
            name = line.strip("| ").partition(" ")[0]
            if _NOT_HERE in listed.get(name, "") and line.startswith(listed[name].partition(_NOT_HERE)[0]):
                listed[name] = line
    lines = ["| package | version | licence | for |", "|---|---|---|---|", *listed.values()]
    TABLE.write_text(_HEAD + "\n".join(lines) + "\n" + _TORCH)
    print(f"{len(listed)} packages in {TABLE.relative_to(locks.ROOT)}")


if __name__ == "__main__":
    main()
