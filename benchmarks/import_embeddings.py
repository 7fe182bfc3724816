"""Time and memory of importing a Parquet file of embeddings, compared with reading it as a whole.

A file of float16 lists is written, with labels and ids. The rivals alternate, each in its own process: `import` reads,
checks and stores the file as an embedding set; `whole` does what a short script would do, without any check, that is
`pyarrow.parquet.read_table`, conversion to NumPy and `numpy.save`. The medians are printed: seconds, and peak memory
(VmHWM) minus the memory that the process held before.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.harness import command_line, machine, memory, reset_peak, verdict

RIVALS = ("import", "whole")
BLOCK = 50_000  # rows that are generated and written at a time
GOAL_SECONDS, GOAL_BYTES = 40, 1e9  # for a million rows of 768 dimensions on two cores


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--dimensions", type=int, default=768)
    parser.add_argument("--group", type=int, default=1_000_000, help="rows of a row group; the default of pyarrow")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", help="folder for the temporary files, about 5 GB")
    parser.add_argument("--measure", nargs=2, metavar=("RIVAL", "FILE"), help="internal: measure one rival")
    arguments = parser.parse_args()
    if arguments.measure:
        measure(arguments.measure[0], Path(arguments.measure[1]))
        return
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        path = Path(name) / "embeddings.parquet"
        began = time.perf_counter()
        write(path, arguments.rows, arguments.dimensions, arguments.group)
        size = path.stat().st_size / 1e9
        print(f"{machine('numpy', 'pyarrow')}: {size:.2f} GB written in {time.perf_counter() - began:.0f} s")
        results: dict[str, list[dict[str, float]]] = {rival: [] for rival in RIVALS}
        for number in range(arguments.rounds):
            for rival in RIVALS[:: -1 if number % 2 else 1]:
                command = [sys.executable, "-m", "benchmarks.import_embeddings", "--measure", rival, str(path)]
                done = subprocess.run(command, check=True, capture_output=True, text=True)
                results[rival].append(json.loads(done.stdout.splitlines()[-1]))
    show(results)


def write(path: Path, rows: int, dimensions: int, group: int) -> None:
    """Write a Parquet file with the columns id, label and embedding (lists of float16)."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    random = np.random.default_rng(0)

    def table(start: int, size: int) -> pa.Table:
        flat = pa.array(random.standard_normal(size * dimensions, dtype=np.float32).astype(np.float16))
        offsets = pa.array(np.arange(size + 1) * dimensions, pa.int32())
        ids = [f"item {number:08d}" for number in range(start, start + size)]
        labels = [f"class {number % 1000:04d}" for number in range(start, start + size)]
        lists = pa.ListArray.from_arrays(offsets, flat)
        return pa.table({"id": ids, "label": labels, "embedding": lists})

    with pq.ParquetWriter(path, table(0, 1).schema) as writer:
        pending, size = [], 0
        for start in range(0, rows, BLOCK):
            pending.append(table(start, min(BLOCK, rows - start)))
            size += pending[-1].num_rows
            if size >= group or start + BLOCK >= rows:
                writer.write_table(pa.concat_tables(pending), row_group_size=group)
                pending, size = [], 0


def measure(rival: str, path: Path) -> None:
    """Measure one rival in this process and print the result as JSON."""
    from dmlcore.data.embedding_sets import files, folder, parquet, roles

    assert parquet  # imported before the measurement
    with tempfile.TemporaryDirectory(dir=path.parent) as name:
        before, began = reset_peak(), time.perf_counter()
        if rival == "import":
            table = files.read(path)
            folder.write(Path(name), table, roles.Roles.guess(table.columns))
        else:
            import numpy as np
            import pyarrow.parquet as pq

            column = pq.read_table(path).column("embedding").combine_chunks()
            flat = column.flatten().to_numpy(zero_copy_only=False)
            np.save(Path(name) / "vectors.npy", flat.reshape(len(column), -1))
        print(json.dumps({"s": time.perf_counter() - began, "peak MB": (memory("VmHWM") - before) / 1e6}))


def show(results: dict[str, list[dict[str, float]]]) -> None:
    """Print the medians of both rivals, their ratios, and the verdict on the goals."""
    medians = {
        rival: {figure: statistics.median(one[figure] for one in rounds) for figure in rounds[0]}
        for rival, rounds in results.items()
    }
    for rival, figures in medians.items():
        print(f"{rival:8s} {figures['s']:7.1f} s   peak {figures['peak MB']:8,.0f} MB")
    for figure in ("s", "peak MB"):
        print(f"{figure}: import / whole = {medians['import'][figure] / medians['whole'][figure]:.2f}")
    fast, small = medians["import"]["s"] <= GOAL_SECONDS, medians["import"]["peak MB"] <= GOAL_BYTES / 1e6
    print(f"at most {GOAL_SECONDS} s: {verdict(fast)}; at most {GOAL_BYTES / 1e6:,.0f} MB: {verdict(small)}")


if __name__ == "__main__":
    main()
