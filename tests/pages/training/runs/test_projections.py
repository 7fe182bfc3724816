"""The curves of a run mark the step at which its projections ended."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dmlcore.spec import RunSpec
from dmlcore.storage.runs import RunStore
from tests.pages.conftest import load_page


def test_the_end_of_each_projection_is_a_line_across_the_curves_of_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("DML_RUNS", str(tmp_path))
    run = RunStore(tmp_path).create(RunSpec().with_overrides(["schedule.steps=9"]))
    rows = [{"kind": "step", "step": number, "loss": 1.0 / number} for number in range(1, 10)]
    ended = {"kind": "projection", "score": 0.5, "radius_before": 0.4, "radius_after": 0.3}
    rows[4:4] = [{**ended, "step": 4, "projection": 1}]
    rows[8:8] = [{**ended, "step": 7, "projection": 2}]
    with open(run.path / "metrics.jsonl", "a") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    app = load_page("runs", run=run.id)
    assert not app.exception
    chart = json.loads(next(c.proto.spec for c in app.get("vega_lite_chart") if "vconcat" in c.proto.spec))
    lines = [layer["data"]["values"] for layer in chart["vconcat"][0]["layer"] if "values" in layer.get("data", {})]
    assert [line[0]["step"] if isinstance(line, list) else line["step"] for line in lines] == [4, 7]
    assert any("end of a projection" in caption.value for caption in app.caption)
