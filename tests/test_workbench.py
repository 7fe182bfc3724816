import numpy as np
import pytest
import torch

from dmlcore import workbench
from dmlcore.spec import RunSpec
from dmlcore.workbench import TrainingError


def test_augmented_pictures_are_shifted_and_flipped_originals() -> None:
    pictures = torch.randint(1, 256, (32, 3, 32, 32), dtype=torch.uint8)  # 0 is the border
    seen = set()
    for picture, changed in zip(pictures, workbench.augment(pictures, seed=3), strict=True):
        shifts = [(dy, dx, flip) for dy in range(9) for dx in range(9) for flip in (False, True)]
        padded = {f: torch.nn.functional.pad(picture.flip(2) if f else picture, (4, 4, 4, 4)) for f in (False, True)}
        found = [s for s in shifts if torch.equal(changed, padded[s[2]][:, s[0] : s[0] + 32, s[1] : s[1] + 32])]
        assert len(found) == 1
        seen.add(found[0])
    assert len(seen) > 20
    assert {flip for _, _, flip in seen} == {False, True}


def test_augmentation_is_a_function_of_the_seed() -> None:
    pictures = torch.randint(0, 256, (8, 3, 40, 32), dtype=torch.uint8)
    assert torch.equal(workbench.augment(pictures, 5), workbench.augment(pictures, 5))
    assert not torch.equal(workbench.augment(pictures, 5), workbench.augment(pictures, 6))


def test_seeds_differ_by_seed_purpose_and_step() -> None:
    seeds = {
        workbench.seed_of(s, purpose, step) for s in range(5) for purpose in ("model", "loss") for step in range(5)
    }
    assert len(seeds) == 50


@pytest.mark.parametrize(
    ("override", "message"),
    [("loss.name=nonsense", "unknown loss 'nonsense'"), ("loss.x=3", "no hyper-parameter x"), ("loss.m=inf", "m must")],
)
def test_a_loss_that_does_not_exist_is_refused(override: str, message: str) -> None:
    spec = RunSpec().with_overrides([override])
    with pytest.raises(TrainingError, match=message):
        workbench.build(spec, workbench.load_data(spec), torch.device("cpu"))


def test_vectors_are_normalised_by_the_training_part() -> None:
    spec = RunSpec()
    data = workbench.load_data(spec)
    made = workbench.build(spec, data, torch.device("cpu"))
    inside = made.model.normalise(torch.from_numpy(np.array(data.inputs[data.parts["train"]])))
    assert inside.mean().item() == pytest.approx(0, abs=1e-4)
    assert inside.std().item() == pytest.approx(1, abs=1e-3)
