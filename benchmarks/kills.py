"""Training runs killed with SIGKILL at random points and resumed: do they end byte for byte like one that was not?

For each way to train (memory, proxies, schedules, plateau, warm-up, mined batches, bfloat16; those of
tests/faults/test_training_faults.py) one run is left alone, and as many as asked for are killed twice each: after a
random step, and at a random system call inside a save. Compared are checkpoint (weights, optimiser, progress), metrics
and embeddings. Prints how many ended the same; exits 1 if one did not.
"""

from __future__ import annotations

import random
import signal
import sys
import tempfile

from benchmarks.harness import command_line


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--trials", type=int, default=25, help="for each way to train")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()

    from dmlcore.storage.runs import RunStore
    from tests.faults import test_training_faults as faults

    choose, wrong = random.Random(arguments.seed), 0
    warm = faults.WarmParent()
    with tempfile.TemporaryDirectory() as folder:
        store = RunStore(folder)
        for kind, overrides in faults.STRENGTHS.items():
            spec = faults.SPEC.with_overrides([*faults.SHORT, *overrides])
            whole = store.create(spec)
            if warm.run(whole) or whole.status() != "done":
                sys.exit(f"{kind}: {whole.state().message}")
            expected, same, killed = faults.outcome(whole), 0, 0
            for _ in range(arguments.trials):
                run = store.create(spec)
                step = choose.randrange(1, spec.schedule.steps)
                saves = 1 + (spec.schedule.steps - step) // spec.schedule.checkpoint_every
                fates = {"die_at_step": step}, {"die_at_event": choose.randrange(faults.EVENTS_PER_SAVE * saves)}
                for fate in fates:
                    killed += warm.run(run, **fate) == signal.SIGKILL
                    if run.status() == "done":
                        break
                    faults.put_back(run)
                if run.status() != "done":
                    warm.run(run)
                same += run.status() == "done" and faults.outcome(run) == expected
                run.delete()
            wrong += arguments.trials - same
            print(f"{kind:40} {killed:4} kills, {same} of {arguments.trials} runs ended the same", flush=True)
    warm.process.communicate()
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
