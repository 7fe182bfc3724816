"""Data shared by all components: the losses and the presets."""

from __future__ import annotations

import json

from dmlcore import losses
from dmlcore.loss_analysis.thesis_figures import PRESETS
from pages.shared.plane.state import Scene
from pages.shared.server.schema import schema


def test_the_schema_offers_every_loss_and_every_preset():
    offered = json.loads(schema())
    assert list(offered["losses"]) == losses.names()
    assert len(offered["presets"]) == len(PRESETS)
    for preset, stored in zip(offered["presets"], PRESETS, strict=True):
        scene = Scene.of(preset)
        assert scene.loss == stored.loss
        assert {k: scene.hyper[k] for k in stored.hyper} == stored.hyper
