from dataclasses import replace

from dmlcore import baselines, data, evaluation


def test_the_inputs_are_scored_once_and_the_kept_row_is_the_very_same(tmp_path, monkeypatch):
    monkeypatch.setenv("DML_CACHE", str(tmp_path))
    digits = data.load("digits", split="samples")
    expected = evaluation.row(
        "inputs", 0, evaluation.score(evaluation.raw_inputs(digits, "test"), digits, "test", (1,))
    )
    first = baselines.inputs_row(digits, "test", (1,))
    monkeypatch.setattr(evaluation, "score", lambda *_: 1 / 0)
    again = baselines.inputs_row(digits, "test", (1,))
    assert list(again.items()) == list(first.items()) == list(expected.items())


def test_other_labels_other_ks_and_a_damaged_file_are_scored_anew(tmp_path, monkeypatch):
    monkeypatch.setenv("DML_CACHE", str(tmp_path))
    digits = data.load("digits", split="samples")
    first = baselines.inputs_row(digits, "test", (1,))
    assert list(baselines.inputs_row(digits, "test", (1, 2))["recall_at"]) == ["1", "2"]
    relabelled = replace(digits, labels=digits.labels // 5)
    assert baselines.inputs_row(relabelled, "test", (1,))["map_at_r"] != first["map_at_r"]
    files = list((tmp_path / "scores").iterdir())
    assert len(files) == 3
    for file in files:
        file.write_text('{"kind": "sco')
    assert baselines.inputs_row(digits, "test", (1,)) == first


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path, monkeypatch):
    (tmp_path / "scores").write_text("in the way")
    monkeypatch.setenv("DML_CACHE", str(tmp_path))
    assert baselines.inputs_row(data.load("digits", split="samples"), "test", (1,))["kind"] == "scores"
