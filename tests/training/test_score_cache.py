"""Cache of baseline scores: equal inputs are computed once; other inputs and damaged files are computed again."""

import numpy as np

from dmlcore.training import score_cache

ROW = {"kind": "baseline", "of": "inputs", "part": "test", "step": 0, "map_at_r": 0.25}


def test_equal_inputs_are_computed_once_and_damage_is_computed_again(tmp_path, monkeypatch):
    monkeypatch.setenv("DML_CACHE", str(tmp_path))
    calls: list[str] = []

    def ask(key: object, values: np.ndarray) -> list[dict]:
        def compute() -> list[dict]:
            calls.append(str(key))
            return [ROW]

        return score_cache.cached(key, [values], compute)

    assert ask("a", np.arange(3)) == ask("a", np.arange(3)) == [ROW]
    assert calls == ["a"]
    ask("b", np.arange(3))
    ask("a", np.arange(4))
    assert calls == ["a", "b", "a"]
    for file in tmp_path.rglob("*.json"):
        file.write_text('[{"kind": 1}]')
    assert ask("a", np.arange(3)) == [ROW]
    assert calls == ["a", "b", "a", "a"]
