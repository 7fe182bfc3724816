"""Process-wide settings that one test changes are reset before the next."""

import os
import signal

import torch


def test_a_test_may_change_what_the_next_one_must_not_meet() -> None:
    torch.set_num_threads(2)
    torch.set_deterministic_debug_mode("error")
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def test_the_next_one_meets_it_as_it_was() -> None:
    assert torch.get_num_threads() == int(os.environ["OMP_NUM_THREADS"])
    assert torch.get_deterministic_debug_mode() == 0
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
