"""The licences of all that is locked, as the packages state them: `python -m docs.supply.licences` writes the table."""

from __future__ import annotations

from importlib import metadata
from importlib.metadata import PackageMetadata

from docs.supply import locks

TABLE = locks.ROOT / "docs" / "licences.md"
_NOT_HERE, _NOT_STATED = "not installed where this was written", "not stated"
# What packages write by hand, in the words of SPDX.
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

DML Lab is under the MIT licence ([LICENSE](../LICENSE)). It contains none of these packages; they are installed
beside it. What each states of itself, written by `make licences`:

"""
_TORCH = """
Not in the table: what only a build of torch with CUDA brings on Linux. NVIDIA's libraries among it are under NVIDIA's
own licences; a CPU build of torch needs none of them. Nor what checks JavaScript and CSS (`package-lock.json`, which
states the licences): development alone needs it.
"""


def of(package: str) -> str:
    """What an installed package says of its licence, in the words of SPDX where it can be told; else why not."""
    try:
        stated = metadata.metadata(package)
    except metadata.PackageNotFoundError:
        return _NOT_HERE
    return _expression(stated) or _classified(stated) or _by_hand(stated) or _NOT_STATED


def is_spdx(licence: str) -> bool:
    """Whether what `of` found is an SPDX expression; the words of a package need not be."""
    return licence not in (_NOT_HERE, _NOT_STATED, "BSD") and "," not in licence


def _expression(stated: PackageMetadata) -> str:
    return str(stated["License-Expression"] or "")


def _classified(stated: PackageMetadata) -> str:
    names = [c.rpartition(" :: ")[2] for c in stated.get_all("Classifier") or () if c.startswith("License :: ")]
    return ", ".join(sorted({_spdx(name) for name in names if name != "OSI Approved"}))  # all, or one of them: not said


def _by_hand(stated: PackageMetadata) -> str:
    text = str(stated["License"] or "").strip()
    if "Permission is hereby granted, free of charge, to any person" in text:
        return "MIT"
    first = text.partition("\n")[0].strip()
    return _spdx(first) if len(first) < 40 else ""


def _spdx(words: str) -> str:
    return _SPDX.get(words.lower(), words)


def rows() -> dict[str, str]:
    """The line of the table for each locked package, but for those of a build of torch with CUDA."""
    app = locks.read(locks.APP)
    torch = {"torch": locks.read(locks.TORCH)["torch"]}
    development = locks.read(locks.DEVELOPMENT)
    return {
        name: f"| {name} | {package.version} | {of(name)} | {'tests' if name in development else 'the app'} |"
        for name, package in sorted({**app, **torch, **development}.items())
    }


def main() -> None:
    """Write the table; what is not installed here keeps what an earlier table says of the same version."""
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
