"""2,000 damaged or hostile files: each raises DataError or is read correctly; nothing is executed."""

import io
import json
import pickle
import random
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from safetensors.numpy import load_file

from dmlcore.data import DataError
from dmlcore.data.embedding_sets import files
from tests.data.embedding_sets import samples

MUTATED = {".npy": 400, ".npz": 250, ".parquet": 400, ".arrow": 300, ".feather": 200, ".csv": 150, ".safetensors": 200}
MOST_BYTES = 300_000_000


class Trap:
    """Object that creates a file when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self):
        return open, (str(self.marker), "w")


def npy_header(descr: str, shape: str, order: str = "False") -> bytes:
    header = f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode()


def mutated(content: bytes, chance: random.Random) -> bytes:
    """Return a copy with random damage, in most cases within the first or the last 400 bytes."""
    data, kind = bytearray(content), chance.randrange(6)
    place = chance.choice(("start", "end", "anywhere"))
    low, high = {"start": (0, 400), "end": (len(data) - 400, len(data)), "anywhere": (0, len(data))}[place]
    at = chance.randrange(max(0, low), min(high, len(data)))
    if kind == 0:
        return bytes(data[:at])
    if kind == 1:
        del data[at : at + chance.randrange(1, 20)]
    elif kind == 2:
        data[at:at] = chance.randbytes(chance.randrange(1, 20))
    elif kind == 3:
        data[at : at + 4] = chance.choice((b"\xff\xff\xff\x7f", b"\xff" * 4, bytes(4), b"9999"))
    else:
        for _ in range(chance.randrange(1, 6)):
            data[min(len(data) - 1, at + chance.randrange(12))] = chance.randrange(256)
    return bytes(data)


def reference(path: Path) -> np.ndarray | None:
    """Return the embeddings as another reader finds them; None if it refuses the file."""
    try:
        match path.suffix:
            case ".npy":
                return np.load(path, allow_pickle=False)
            case ".npz":
                with np.load(path, allow_pickle=False) as arrays:
                    return arrays["vector"]
            case ".parquet":
                column = pq.read_table(path).column("vector")
            case ".arrow" | ".feather":
                with pa.OSFile(str(path)) as file:
                    column = pa.ipc.open_file(file).read_all().column("vector")
            case ".safetensors":
                return load_file(path)["vector"]
            case _:
                return None
        return np.array(column.to_pylist(), dtype=np.float32)
    except Exception:
        return None


def peak(reset: bool = False) -> int:
    """Return the largest resident memory of this process in bytes since the last call with `reset`."""
    if reset:
        Path("/proc/self/clear_refs").write_text("5")
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line.split()[1] for line in lines if line.startswith("VmHWM")))


def attempt(path: Path) -> np.ndarray | None:
    """Read a file completely; return its vectors, or None if it raised DataError."""
    try:
        table = files.read(path)
        chunks = list(table.vectors.chunks(16))
        assert table.columns.num_columns == 0 or table.columns.num_rows == table.vectors.shape[0]
    except DataError as refused:
        message = str(refused)
        assert 20 < len(message) < 1500, message
        return None
    values = np.concatenate(chunks)
    assert values.shape == table.vectors.shape
    assert values.dtype.kind == "f"
    assert np.isfinite(values).all()
    assert (values != 0).any(axis=1).all()
    return values


@pytest.mark.parametrize("suffix", MUTATED)
def test_a_mutated_file_is_refused_or_read_as_other_readers_do(suffix: str, tmp_path: Path) -> None:
    original = samples.write(tmp_path / f"original{suffix}", samples.vectors())
    content, chance, path = original.read_bytes(), random.Random(suffix), tmp_path / f"mutated{suffix}"
    before = peak(reset=True)
    for _ in range(MUTATED[suffix]):
        path.write_bytes(mutated(content, chance))
        values = attempt(path)
        if values is not None:
            expected = reference(path)
            assert (
                expected is None or expected.dtype.kind != "f" or np.array_equal(values, expected.astype(values.dtype))
            )
    assert peak() - before < MOST_BYTES


def crafted(folder: Path, marker: Path) -> Iterator[Path]:
    """Write files that are built to harm a careless reader, one after another."""
    trap = Trap(marker)

    def file(name: str, content: bytes) -> Path:
        path = folder / name
        path.write_bytes(content)
        return path

    for number, name in enumerate(("a.npy", "a.npz", "a.parquet", "a.csv", "a.arrow", "a.safetensors", "a.pkl")):
        yield file(f"pickle-{number}-{name}", pickle.dumps(trap, protocol=number % 6))
    np.save(folder / "objects.npy", np.array([[trap]], dtype=object), allow_pickle=True)
    yield folder / "objects.npy"
    np.savez(folder / "objects.npz", vector=samples.vectors(), label=np.array([trap] * samples.ROWS, dtype=object))
    yield folder / "objects.npz"
    for shape in (
        "(1, 1000000000)",
        "(1000000000, 1)",
        "(-1, 4)",
        "(4, -1)",
        "(0, 8)",
        "(8, 0)",
        "()",
        "(9,)",
        "8",
        "None",
    ):
        for descr in ("'<f4'", "'<f2'", "'|O'", "'<U0'", "'<c8'", "[('a', '<f4')]", "'<f16'", "'?'", "'<M8[s]'", "1"):
            yield file("header.npy", npy_header(descr, shape) + bytes(64))
    for shape in ("(65536, 65536)", "(2, 3, 4)", "(99999999999999999999, 2)", "(True, 2)", "(1.0, 2)", "('a', 2)"):
        yield file("shape.npy", npy_header("'<f4'", shape) + bytes(64))
    yield file("nested.npy", npy_header("'<f4'", "(" * 3000 + ")" * 3000))
    yield file("code.npy", npy_header("__import__('os').system('touch ' + 'x')", "(1, 1)"))
    yield from bombs(folder)
    yield from hostile_tables(folder)
    for header in ({"v": {"dtype": "F32", "shape": [10**9, 10**9], "data_offsets": [0, 4 * 10**18]}}, [], {"v": []}, 7):
        text = json.dumps(header).encode()
        yield file("header.safetensors", len(text).to_bytes(8, "little") + text + bytes(8))
    for length in (2**63, 2**40, 10**6, 0):
        yield file("length.safetensors", length.to_bytes(8, "little") + b"{}")
    yield file("nested.csv", b"vector\n" + b'"' + b"[" * 200_000 + b'"\n')
    yield file("huge.csv", b'vector\n"[1' + b",1" * 70_000 + b']"\n')
    yield file("line.csv", b"vector\n" + b"1" * 9_000_000)
    yield file("quote.csv", b'vector\n"[1,2]\n' * 1000)
    yield file("number.csv", b'vector\n"[1' + b"0" * 5000 + b', 2]"\n')
    yield file("columns.csv", b",".join(b"c%d" % number for number in range(200_000)) + b"\n")


def bombs(folder: Path) -> Iterator[Path]:
    """Write .npz files of a few kB that unpack to gigabytes, or claim to."""
    header, zeros = npy_header("'<f4'", "(1000000, 64)"), bytes(2**24)
    for method in (zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2):
        path = folder / f"bomb-{method}.npz"
        with zipfile.ZipFile(path, "w", method) as archive, archive.open("v.npy", "w", force_zip64=True) as member:
            member.write(header)
            for _ in range(256 * 10**6 // len(zeros) + 1 if method == zipfile.ZIP_DEFLATED else 4):
                member.write(zeros)
        yield path
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("v.npy", npy_header("'<f4'", "(100, 4)") + bytes(range(1, 201)) * 8)
        archive.writestr("label.npy", npy_header("'<U9000000'", "(100,)"))
    (folder / "claims.npz").write_bytes(buffer.getvalue())
    yield folder / "claims.npz"
    small = bytearray(buffer.getvalue())
    for at in range(0, len(small) - 8, 7):
        forged = bytearray(small)
        forged[at : at + 8] = b"\xff" * 8
        (folder / "forged.npz").write_bytes(forged)
        yield folder / "forged.npz"


def hostile_tables(folder: Path) -> Iterator[Path]:
    """Write Parquet and Arrow files with few bytes and many values, ragged lists, missing rows and odd types."""
    ones, rows = np.ones((600_000, 64), np.float32), 20_000_000
    contents = {
        "wide": pa.table({"v": pa.array([[1.0] * 70_000] * 3)}),
        "ragged": pa.table({"v": pa.array([[1.0, 2.0], [1.0], [1.0, 2.0, 3.0]])}),
        "missing": pa.table({"v": pa.array([[1.0], None])}),
        "missing first": pa.table({"v": pa.array([None, [1.0]], pa.list_(pa.float32()))}),
        "missing number": pa.table({"v": pa.array([[1.0, None], [1.0, 2.0]])}),
        "no rows": pa.table({"v": pa.array([], pa.list_(pa.float32()))}),
        "no width": pa.table({"v": pa.array([[], []], pa.list_(pa.float32()))}),
        "text lists": pa.table({"v": pa.array([["a"], ["b"]])}),
        "nested lists": pa.table({"v": pa.array([[[1.0]], [[2.0]]])}),
        "many columns": pa.table({f"c{number}": [1.0] for number in range(5_000)}),
        "repeated": pa.Table.from_arrays([pa.array([[1.0]]), pa.array([1])], ["v", "v"]),
    }
    for name, content in contents.items():
        pq.write_table(content, folder / f"{name}.parquet")
        yield folder / f"{name}.parquet"
        samples.write_ipc(folder / f"{name}.arrow", content)
        yield folder / f"{name}.arrow"
    pq.write_table(pa.table({"v": samples.lists(ones)}), folder / "constant.parquet", compression="zstd")
    yield folder / "constant.parquet"
    narrow = {"v": samples.lists(np.ones((rows, 1), np.float16), "large"), "text": pa.repeat("x" * 9, rows)}
    pq.write_table(pa.table(narrow), folder / "narrow.parquet", compression="zstd")
    yield folder / "narrow.parquet"
    long = pa.DictionaryArray.from_arrays(pa.array(np.zeros(1000, np.int8)), pa.array(["x" * 5_000_000]))
    content = pa.table({"v": samples.lists(samples.vectors(rows=1000)), "text": long})
    pq.write_table(content, folder / "long text.parquet", compression="zstd")
    yield folder / "long text.parquet"
    samples.write_ipc(folder / "long text.arrow", content, compression="zstd")
    yield folder / "long text.arrow"
    zeros = pa.table({"v": samples.lists(0 * ones)})
    samples.write_ipc(folder / "zeros.arrow", zeros, compression="zstd", rows=len(ones))
    yield folder / "zeros.arrow"


def test_crafted_files_are_refused_without_execution_and_with_little_memory(tmp_path: Path) -> None:
    marker, written = tmp_path / "executed", 0
    for path in crafted(tmp_path, marker):
        before = peak(reset=True)
        values = attempt(path)
        grown = peak() - before
        assert grown < MOST_BYTES, f"{path.name} ({path.stat().st_size:,} bytes) took {grown:,} bytes"
        assert values is None, path.name
        written += 1
        path.unlink()
    assert written > 150
    assert not marker.exists()
    assert not Path("x").exists()
