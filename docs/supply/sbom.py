"""Software bill of materials in CycloneDX 1.6 JSON, from the lock files and the installed packages: `make sbom`.

The components are the packages in the lock files of the app, with the SHA-256 digests of all their files in the
registry. Licences and dependencies are read from the packages installed here. Equal lock files give equal bytes if the
installed packages are equal.
"""

from __future__ import annotations

import json
import sys
import tomllib
import uuid
from importlib import metadata
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from docs.supply import licences, locks
from docs.supply.locks import Locked


def bill() -> dict[str, Any]:
    """Return the bill of materials of the app as a dictionary that can be written as JSON."""
    project = tomllib.loads((locks.ROOT / "pyproject.toml").read_text())["project"]
    packages = {**locks.read(locks.APP), **locks.read(locks.TORCH)}
    itself = {
        "type": "application",
        "bom-ref": project["name"],
        "name": project["name"],
        "version": project["version"],
        "description": project["description"],
        "licenses": [{"license": {"id": "MIT"}}],
    }
    components = [_component(package) for _, package in sorted(packages.items())]
    direct = sorted(canonicalize_name(r.name) for r in locks.requirements("requirements.txt"))
    needs = {project["name"]: direct} | {name: _needs(name, packages) for name in sorted(packages)}
    dependencies = [
        {"ref": _ref(name, packages), "dependsOn": [_ref(other, packages) for other in others]}
        for name, others in needs.items()
    ]
    body = {"metadata": {"component": itself}, "components": components, "dependencies": dependencies}
    # The serial number is a hash of the contents, so that equal contents give equal files.
    serial = uuid.uuid5(uuid.NAMESPACE_OID, json.dumps(body, sort_keys=True))
    head = {"bomFormat": "CycloneDX", "specVersion": "1.6", "serialNumber": f"urn:uuid:{serial}", "version": 1}
    return {**head, **body}


def _component(package: Locked) -> dict[str, Any]:
    address = f"pkg:pypi/{package.name}@{package.version}"
    # A package has several files, one per system, so their digests are stored in its distribution reference.
    files = [{"alg": "SHA-256", "content": digest} for digest in package.digests]
    licence = licences.of(package.name)
    stated = {"expression": licence} if licences.is_spdx(licence) else {"license": {"name": licence}}
    return {
        "type": "library",
        "bom-ref": address,
        "name": package.name,
        "version": package.version,
        "purl": address,
        "licenses": [stated],
        "externalReferences": [{"type": "distribution", "url": address, "hashes": files}],
    }


def _ref(name: str, packages: dict[str, Locked]) -> str:
    return f"pkg:pypi/{name}@{packages[name].version}" if name in packages else name


def _needs(name: str, packages: dict[str, Locked]) -> list[str]:
    try:
        lines = metadata.requires(name) or []
    except metadata.PackageNotFoundError:
        return []
    wanted = [Requirement(line) for line in lines]
    here = {canonicalize_name(r.name) for r in wanted if r.marker is None or r.marker.evaluate({"extra": ""})}
    return sorted(here & packages.keys())


def main() -> None:
    """Write the bill of materials to the file given as argument, by default sbom.cdx.json."""
    path = Path(sys.argv[1] if len(sys.argv) > 1 else locks.ROOT / "sbom.cdx.json")
    path.write_text(json.dumps(bill(), indent=1) + "\n")
    print(f"{len(bill()['components'])} components in {path}")


if __name__ == "__main__":
    main()
