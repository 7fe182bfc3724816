"""t-SNE of embeddings compared with scikit-learn's default TSNE: time, trustworthiness and share of neighbours kept.

    python -m benchmarks.map [--rounds 3] [--threads 2] [--file embeddings.npz] [--points 5924]

The input is 5,924 x 128 float32 embeddings of unit length in 100 classes of 41 to 60 samples, the sizes of the
CUB-200-2011 test half. They are generated from a seed at two stages of training, as families of five similar classes
with samples that vary along 24 directions. --file uses the embeddings of a run instead. The two implementations
alternate in every round. Wall-clock time is reported together with processor time, which other load on the machine
affects less. Targets: at most 0.6x the time of scikit-learn, at equal or better trustworthiness and share of the 15
nearest neighbours kept.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from statistics import median

from benchmarks.harness import command_line, machine, ratios, verdict

TARGET = 0.6
SIZES = [60] * 94 + [41, 43, 45, 50, 52, 53]  # sums to 5,924
STAGES = {"overlapping classes": 2.2, "separated classes": 1.5}


def made_up(noise, seed=0):
    """Return unit vectors (5924, 128) of 100 classes in 20 families, and their class labels."""
    import numpy as np

    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(len(SIZES)), SIZES)

    def vectors(count, dimensions):
        return rng.normal(size=(count, dimensions)) / np.sqrt(dimensions)

    means = vectors(20, 128)[np.arange(100) // 5] + vectors(100, 128)
    within = vectors(len(labels), 24) @ vectors(24, 128)
    points = means[labels] + noise * (within + 0.5 * vectors(len(labels), 128))
    return (points / np.linalg.norm(points, axis=1, keepdims=True)).astype(np.float32), labels


def measure(name, embeddings, labels, rounds):
    """Print time and quality of dmlcore's t-SNE and of scikit-learn's on the given embeddings."""
    from sklearn.manifold import TSNE

    from dmlcore.inspection.maps.quality import quality
    from dmlcore.metrics import retrieval
    from dmlcore.projection import tsne

    rivals = {
        "ours": lambda: tsne(embeddings),
        "scikit-learn": lambda: TSNE(random_state=0).fit_transform(embeddings),
    }
    clock: dict[str, list[float]] = {rival: [] for rival in rivals}
    processor: dict[str, list[float]] = {rival: [] for rival in rivals}
    planes = {}
    tsne(embeddings[:200], iterations=100)  # warm up, so that imports and first calls of the libraries are not timed
    TSNE(max_iter=250, perplexity=5).fit_transform(embeddings[:200])
    for _ in range(rounds):
        for rival, call in rivals.items():
            wall, cpu = time.perf_counter(), time.process_time()
            planes[rival] = call()
            clock[rival].append(time.perf_counter() - wall)
            processor[rival].append(time.process_time() - cpu)
    qualities = {rival: quality(embeddings, plane) for rival, plane in planes.items()}
    score = f", R@1 {retrieval(embeddings, labels).recall_at[1]:.3f}" if labels is not None else ""
    print(f"\n{name}: {embeddings.shape[0]:,} x {embeddings.shape[1]}{score}")
    print(f"{'':14}{'clock, s':>10}{'processor, s':>14}{'trustworthiness':>17}{'neighbours kept':>17}")
    for rival, q in qualities.items():
        times = f"{median(clock[rival]):10.1f}{median(processor[rival]):14.1f}"
        print(f"{rival:14}{times}{q.trustworthiness:17.4f}{q.kept_neighbours:17.4f}")
    for kind, times in (("clock", clock), ("processor", processor)):
        ratio = ratios(times["ours"], times["scikit-learn"])
        spread = f"({ratio[0]:.2f} to {ratio[-1]:.2f})"
        reached = verdict(median(ratio) <= TARGET)
        print(f"ours / scikit-learn, {kind}: {median(ratio):.2f} {spread}  at most {TARGET}x: {reached}")
    ours, theirs = qualities["ours"], qualities["scikit-learn"]
    better = ours.trustworthiness >= theirs.trustworthiness and ours.kept_neighbours >= theirs.kept_neighbours
    print(f"quality: equal or better in both: {verdict(better)}")
    if ours.sampled < ours.points:
        print(f"quality measured on {ours.sampled:,} points")


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="timed rounds per stage (default 3)")
    parser.add_argument("--threads", type=int, default=2, help="threads of both rivals (default 2)")
    parser.add_argument("--file", type=Path, help="embeddings/*.npz of a run, in place of made-up embeddings")
    parser.add_argument("--points", type=int, help="size of a random subset of the embeddings, drawn from a seed")
    options = parser.parse_args()
    if options.rounds < 1 or options.threads < 1 or (options.points or 100) < 100:
        parser.error("--rounds and --threads must be at least 1, --points at least 100")
    os.environ["OMP_NUM_THREADS"] = str(options.threads)  # set before importing the libraries, which read it on import

    import faiss
    import numpy as np

    faiss.omp_set_num_threads(options.threads)
    print(machine("openTSNE", "scikit-learn", "faiss-cpu", "numpy"))
    print(f"{options.threads} threads, medians of {options.rounds} rounds; ratios: medians (lowest to highest)")
    if options.file:
        with np.load(options.file, allow_pickle=False) as arrays:
            cases = {options.file.parents[1].name: (arrays["embeddings"], arrays["labels"])}
    else:
        cases = {name: made_up(noise) for name, noise in STAGES.items()}
    for name, (embeddings, labels) in cases.items():
        if options.points and options.points < len(embeddings):
            rows = np.sort(np.random.default_rng(0).choice(len(embeddings), options.points, replace=False))
            embeddings, labels = embeddings[rows], labels[rows]
        measure(name, embeddings, labels, options.rounds)


if __name__ == "__main__":
    main()
