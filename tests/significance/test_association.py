import numpy as np
import pytest
from scipy import stats

from dmlcore.significance.association import LEAST, associate


def test_the_correlation_is_spearmans_and_lies_within_its_interval() -> None:
    random = np.random.default_rng(0)
    x = random.normal(size=40).round(1)  # with ties
    y = -x + random.normal(size=40)
    found = associate(x.tolist(), y.tolist())
    assert found is not None
    assert found.rho == pytest.approx(stats.spearmanr(x, y).statistic)
    assert found.low < found.rho < found.high
    assert (found.sign(), found.count) == (-1, 40)
    assert found.words.startswith("rank correlation −0.")


def test_independent_scores_have_no_sign_in_about_19_of_20_cases() -> None:
    random = np.random.default_rng(1)
    signs = [associate(*random.normal(size=(2, 40)).tolist()).sign() for _ in range(60)]
    assert sum(sign != 0 for sign in signs) <= 8  # 3 expected


@pytest.mark.parametrize("x", [[1.0] * LEAST, list(range(LEAST - 1))])
def test_too_few_variants_or_equal_scores_have_no_correlation(x: list[float]) -> None:
    assert associate(x, list(range(len(x)))) is None


def test_scores_of_different_variants_are_refused() -> None:
    with pytest.raises(ValueError, match="one of each per variant"):
        associate([1.0, 2.0], [1.0])
