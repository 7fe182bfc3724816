"""The example run that ships with the library.

The run was trained from a spec and packed into an archive by `pack`; `find` copies it into run stores that lack it. In
a store it is an ordinary run that can be opened, forked and deleted like any other, but `RunStore` omits it when it
lists runs. After deletion it is not copied again until `restore` is called.
"""

from __future__ import annotations

import hashlib
import io
import json
import logging
import shutil
import zipfile
from contextlib import suppress
from pathlib import Path

from dmlcore.presets import EXAMPLE as ARCHIVE
from dmlcore.storage import atomic_files
from dmlcore.storage.run_directory import LOCK, LOG, PREV
from dmlcore.storage.runs import EXAMPLE, EXAMPLE_REMOVED, Run, RunError, RunStore

DIGEST = ARCHIVE.with_suffix(".sha256")
SPEC = "glyphs"
LARGEST = 2 * 10**6  # largest archive in bytes
LEFT_OUT = (LOCK, LOG, PREV)
DERIVED = ".neighbours.npz"  # suffix of files that are not packed, because they can be recomputed within a second
# archive entry that lists duplicates: name of each omitted file -> name of the archived file with the same contents
TWICE = "twice.json"
log = logging.getLogger(__name__)


def find(store: RunStore) -> Run | None:
    """Return the example run of a store, copying it there if missing; None if it was deleted or cannot be written."""
    if (store.root / EXAMPLE_REMOVED).exists():
        return None
    with suppress(RunError):
        return store.open(EXAMPLE)
    try:
        return store.put(EXAMPLE, _unpack)
    except FileExistsError:  # another process is copying the example
        return None
    except (OSError, RunError) as error:
        log.warning("the example cannot be copied into %s: %s", store.root, error)
        with suppress(RunError):  # another process copied the example first
            return store.open(EXAMPLE)
        return None


def was_removed(store: RunStore) -> bool:
    """Return True if the example run was deleted from this store."""
    return (store.root / EXAMPLE_REMOVED).exists()


def restore(store: RunStore) -> Run | None:
    """Copy the example run into a store from which it was deleted, and return it; None if it cannot be written."""
    (store.root / EXAMPLE_REMOVED).unlink(missing_ok=True)
    return find(store)


def _unpack(folder: Path) -> None:
    content = ARCHIVE.read_bytes()
    if hashlib.sha256(content).hexdigest() != DIGEST.read_text().split()[0]:
        raise RunError(f"{ARCHIVE.name} is damaged; restore it from the release")
    with zipfile.ZipFile(io.BytesIO(content)) as packed:
        twice: dict[str, str] = json.loads(packed.read(TWICE))
        packed.extractall(folder, [name for name in packed.namelist() if name != TWICE])
    for name, other in twice.items():
        shutil.copyfile(folder / other, folder / name)


def complete(run: Run) -> None:
    """Create the files that the pages show for a finished run: maps, weight maps and embeddings of all snapshots.

    The caller must hold the run's lock.
    """
    from dmlcore.inspection import snapshots
    from dmlcore.inspection.local import weight_maps
    from dmlcore.inspection.maps import maps, trajectory

    snapshots.embed_all(run)
    weight_maps.write(run)
    maps.make(run)
    trajectory.make(run)


def pack(run: Run) -> Path:
    """Replace the archive of the example run with this run; raise RunError if it is too large to ship."""
    members, names, twice = io.BytesIO(), dict[bytes, str](), dict[str, str]()
    with zipfile.ZipFile(members, "w", zipfile.ZIP_LZMA) as packed:
        for path in sorted(run.path.rglob("*")):
            if not path.is_file() or path.name in LEFT_OUT or path.name.endswith(DERIVED):
                continue
            name, content = path.relative_to(run.path).as_posix(), path.read_bytes()
            first = names.setdefault(hashlib.sha256(content).digest(), name)
            if first != name:
                twice[name] = first
            else:
                # ZipInfo has the fixed date 1980, so equal runs give equal bytes
                packed.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_LZMA)
        packed.writestr(zipfile.ZipInfo(TWICE), json.dumps(twice), zipfile.ZIP_LZMA)
    content = members.getvalue()
    if len(content) > LARGEST:
        raise RunError(f"the example has {len(content):,} bytes, at most {LARGEST:,} ship")
    atomic_files.replace(ARCHIVE, lambda file: file.write(content))
    line = f"{hashlib.sha256(content).hexdigest()}  {ARCHIVE.name}\n"
    atomic_files.replace(DIGEST, lambda file: file.write(line.encode()))
    return ARCHIVE
