import hashlib
import json
import os
from pathlib import Path

import pytest
import safetensors.torch
import torch

from dmlcore.storage import checkpoint
from dmlcore.storage.checkpoint import CheckpointError

TENSORS = {"model.w": torch.arange(6.0).view(2, 3), "optimiser.0.step": torch.tensor(3.0), "model.n": torch.tensor(7)}
FACTS = {"step": 3, "best_score": 0.1 + 0.2, "spec": "{}", "threads": 1, "none": None}


def test_tensors_and_facts_come_back_exactly(tmp_path: Path) -> None:
    digest = checkpoint.save(tmp_path, TENSORS, FACTS)
    found = checkpoint.load(tmp_path)
    assert (found.digest, found.facts, found.path) == (digest, FACTS, tmp_path / "last.ckpt")
    assert found.tensors.keys() == TENSORS.keys()
    assert all(torch.equal(found.tensors[name], TENSORS[name]) for name in TENSORS)
    assert {name: t.dtype for name, t in found.tensors.items()} == {name: t.dtype for name, t in TENSORS.items()}


def test_equal_contents_give_equal_bytes() -> None:
    backwards = dict(reversed(TENSORS.items())), dict(reversed(FACTS.items()))
    assert {checkpoint.pack(TENSORS, FACTS) for _ in range(20)} == {checkpoint.pack(*backwards)}


def test_the_bytes_are_those_that_safetensors_writes() -> None:
    generator = torch.Generator().manual_seed(0)
    made = {
        f"{kind}.{shape}".replace("torch.", 'm/ü"'): torch.randint(0, 2, shape, generator=generator).to(kind)
        for kind in checkpoint.TYPES
        for shape in ((), (3,), (2, 0), (4, 3, 2))
    }
    made["turned"] = torch.arange(6.0).view(2, 3).T
    plain = {name: tensor.contiguous() for name, tensor in made.items()}
    facts = {"words": 'é\n"\x1f', **FACTS}
    expected = safetensors.torch.save(plain, {"facts": json.dumps(facts, sort_keys=True)})
    assert checkpoint.pack(made, facts) == expected
    assert checkpoint.digest_of(plain) == hashlib.sha256(checkpoint.pack(plain, {})).hexdigest()


def test_two_generations_are_kept(tmp_path: Path) -> None:
    for step in range(4):
        checkpoint.save(tmp_path, TENSORS, {"step": step})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["last.ckpt", "prev.ckpt"]
    assert [checkpoint.read(tmp_path / name).facts["step"] for name in ("last.ckpt", "prev.ckpt")] == [3, 2]


def test_nothing_saved_is_none(tmp_path: Path) -> None:
    assert checkpoint.load(tmp_path) is None


def test_every_flipped_bit_is_found(tmp_path: Path) -> None:
    checkpoint.save(tmp_path, TENSORS, FACTS)
    path = tmp_path / "last.ckpt"
    good = path.read_bytes()
    for place in range(0, len(good), 7):
        path.write_bytes(good[:place] + bytes([good[place] ^ 4]) + good[place + 1 :])
        with pytest.raises(CheckpointError, match=r"last\.ckpt is damaged"):
            checkpoint.read(path)


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "last.ckpt").mkdir()
    with pytest.raises(CheckpointError, match=r"last\.ckpt cannot be read: Is a directory"):
        checkpoint.read(tmp_path / "last.ckpt")


def test_a_missing_last_generation_falls_back(tmp_path: Path) -> None:
    checkpoint.save(tmp_path, TENSORS, {"step": 1})
    checkpoint.save(tmp_path, TENSORS, {"step": 2})
    (tmp_path / "last.ckpt").unlink()  # killed between the two renames
    found = checkpoint.load(tmp_path)
    assert found.facts["step"] == 1


def test_a_damaged_generation_never_pushes_out_a_whole_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint.save(tmp_path, TENSORS, {"step": 1})
    checkpoint.save(tmp_path, TENSORS, {"step": 2})
    (tmp_path / "last.ckpt").write_bytes(b"damaged")
    rename = os.replace

    def killed(source: Path, target: Path) -> None:
        if target.name == "last.ckpt":
            raise KeyboardInterrupt
        rename(source, target)

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", killed)
        with pytest.raises(KeyboardInterrupt):
            checkpoint.save(tmp_path, TENSORS, {"step": 2})
    found = checkpoint.load(tmp_path)
    assert found.facts["step"] == 1

    checkpoint.save(tmp_path, TENSORS, {"step": 2})
    assert [checkpoint.read(tmp_path / name).facts["step"] for name in ("last.ckpt", "prev.ckpt")] == [2, 1]
