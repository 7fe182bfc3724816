"""Reading of the header of a checkpoint."""

import os
import threading

from dmlcore.storage import fork_parent, run_directory


def test_a_pipe_in_place_of_a_checkpoint_is_no_checkpoint(tmp_path):
    os.mkfifo(tmp_path / run_directory.LAST)
    steps = []
    reader = threading.Thread(target=lambda: steps.append(fork_parent.steps(tmp_path)), daemon=True)
    reader.start()
    reader.join(60)  # seconds; a naive open of a pipe would wait for a writer forever
    assert steps == [{}]
