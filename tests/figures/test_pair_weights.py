"""Maps of pair weights as figures, arrays and scripts: numbers of the library, and equal bytes for equal views."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from dmlcore import losses
from dmlcore.figures import fields, pair_weights
from dmlcore.geometry.field_table import edge_gradient
from dmlcore.geometry.triplet import Edges
from dmlcore.loss_analysis.pair_weights import similarities
from tests.loss_analysis.gram import gram_weights
from tests.members import in_one_case

PAIRS = ("ap", "an", "pn")
PLACES = [{"rival": "perpendicular"}, {"rival": "symmetric"}, {"rival": "fixed", "pn": 0.3}]


@in_one_case(placed=PLACES, name=losses.names())
def test_weights_are_read_off_the_gradient_of_the_loss(name, placed):
    """Compared with automatic differentiation of the loss of three vectors; the maps use similarities instead."""
    loss = losses.create(name)
    arrays = pair_weights.weight_arrays([loss], n=41, **placed)
    axis = torch.from_numpy(arrays["similarity"])
    everywhere = similarities(axis[None, :], axis[:, None], **placed)
    np.testing.assert_array_equal(arrays["exists"], everywhere.determinant() >= 0)
    independent = everywhere.determinant().numpy() > 1e-3
    felt = np.argwhere(independent & (arrays["loss1"] > 0) & (arrays["raw1"] < loss.m2))
    for row, col in felt[[len(felt) // 5, len(felt) // 2, -2]]:
        s = similarities(axis[col], axis[row], **placed)
        found = gram_weights(lambda points: loss.clamped(*points), s)
        expected = torch.stack([getattr(found, pair) for pair in PAIRS])
        assert arrays["dL_dS1"][:, row, col] == pytest.approx(expected.numpy(), rel=1e-6, abs=1e-9)
        d = torch.stack([(2 - 2 * x).sqrt() for x in s]).numpy()
        assert arrays["dL_dd1"][:, row, col] == pytest.approx(-d * expected.numpy(), rel=1e-6, abs=1e-9)
        at = (axis[col].item(), axis[row].item())
        one = pair_weights.weight_arrays([loss], n=2, at=at, **placed)
        assert one["at_dL_dS1"] == pytest.approx(expected.numpy(), rel=1e-6, abs=1e-9)


def test_boundaries_lie_where_raw_meets_the_clamp():
    loss = losses.create("distance_sensitive")
    arrays = pair_weights.weight_arrays([losses.create("ranking"), loss])
    for name, level, near in (("outer", 0.0, 0.02), ("inner", loss.m2, 0.3)):
        lines = fields.polylines(arrays, f"{name}2")
        assert lines, name
        s = similarities(*torch.tensor(np.concatenate(lines)).T)
        d = s.distances()
        one = torch.ones_like(d.ap)
        raw, _ = edge_gradient(loss, Edges(*d, one, one, one))
        assert (raw - level).abs().max() < near
    assert len(arrays["inner1"]) == 0  # an open upper clamp


@pytest.mark.parametrize(
    ("names", "placed"),
    [(("ranking", "distance_sensitive"), PLACES[0]), (("location_aware", "facenet_mined"), PLACES[2])],
)
def test_the_snippet_reproduces_the_arrays_exactly(names, placed, tmp_path, monkeypatch, capsys):
    chosen = [losses.create(name) for name in names]
    placed = placed | {"at": (0.2, 0.7), "n": 41}
    arrays, drawing = pair_weights.weight_arrays(chosen, **placed), {"weight": "ap", "by": "d", "dark": True}
    script = pair_weights.snippet(chosen, **placed, **drawing)
    monkeypatch.chdir(tmp_path)
    found: dict = {}
    assert "weights.pdf" in script  # a PNG takes a third of the time
    exec(compile(script.replace(".pdf", ".png"), "snippet.py", "exec"), found)
    np.testing.assert_array_equal(found["axis"].numpy(), arrays["similarity"])
    np.testing.assert_array_equal(found["exists"].numpy(), arrays["exists"])
    np.testing.assert_array_equal(found["s"].pn.numpy(), arrays["S_pn"])
    for k, loss in enumerate(chosen, start=1):
        for key, mine in (("weights", f"dL_dS{k}"), ("by_distance", f"dL_dd{k}"), ("weights_there", f"at_dL_dS{k}")):
            for i, pair in enumerate(PAIRS):
                np.testing.assert_array_equal(getattr(found[key][k - 1], pair).numpy(), arrays[mine][i])
        np.testing.assert_array_equal(found["weights"][k - 1].raw.numpy(), arrays[f"raw{k}"])
        np.testing.assert_array_equal(found["weights"][k - 1].loss.numpy(), arrays[f"loss{k}"])
        assert found["weights_there"][k - 1].loss.item() == arrays[f"at_loss{k}"][1]
        assert loss.formula.source in script
    assert f"loss {arrays['at_loss1'][1]:.6g}" in capsys.readouterr().out
    expected = fields.save_figure(pair_weights.draw_weights(chosen, **placed, **drawing), format="png")
    assert (tmp_path / "weights.png").read_bytes() == expected


def test_json_holds_the_arrays():
    chosen = [losses.create("ranking"), losses.create("distance_sensitive", m2=20)]
    arrays = pair_weights.weight_arrays(chosen, n=21)
    text = fields.as_json(arrays, pair_weights.about(chosen))
    found = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} in JSON"))
    assert [x["loss"] for x in found["losses"]] == ["ranking", "distance_sensitive"]
    assert found["dL_dS2"] == arrays["dL_dS2"].tolist()


def texts(figure) -> str:
    from matplotlib.text import Text

    return " ".join(" ".join(x.get_text() for x in figure.findobj(Text)).split())


@in_one_case(change=[{"weight": "aa"}, {"by": "x"}, {"rival": "nearest"}, {"n": 1}, {"at": (2, 0)}])
def test_bad_input_is_named(change):
    with pytest.raises(ValueError, match=str(*change)):
        pair_weights.draw_weights([losses.create("ranking")], **change)
    if change in ({"rival": "nearest"}, {"n": 1}):
        with pytest.raises(ValueError, match=str(*change)):
            pair_weights.weight_arrays([losses.create("ranking")], **change)


def test_one_colour_scale_shows_the_weaker_of_two_losses():
    strong, weak = (np.full((1, 4, 4), size) for size in (8.8, 0.9))
    assert pair_weights.common_top(np.concatenate((strong, weak))) < 1
    assert pair_weights.common_top(np.concatenate((strong, 0.01 * weak))) == pytest.approx(
        0.88
    )  # and not only for weak weights
    assert pair_weights.common_top(np.zeros((2, 4, 4))) > 0
