"""Presets of the Toy training page: example states that open with one click."""

from __future__ import annotations

from pages.shared.state.page_state import Preset

# the captions below describe runs of 400 steps with seed 0
IMAGES = "dim=64&normalize=1&classes=16&samples=4&optimiser=adam&rate=0.0003&part=test"
# A URL without parameters opens the first preset, which is played from a recording instead of being trained.
PRESETS = (
    Preset(
        "moons",
        "Four pairs of interlocking moons. After 400 batches A separates more moons than B, with each of five seeds "
        "(MAP@R 0.72 against 0.59 with this seed).",
        "data=moons",
    ),
    Preset(
        "12 Gaussians",
        "The classes overlap, so no map separates them completely. How far does each loss get?",
        "data=toy",
    ),
    Preset(
        "unseen classes",
        "The same two training runs, shown on the 16 unseen classes.",
        "data=toy&part=test",
    ),
    Preset(
        "pulls, pushes",
        "A only pulls, so all classes collapse to one point; B only pushes, so samples spread without clustering.",
        "data=toy&a.moves=pulls&b.loss=ranking&b.m=0.1&b.moves=pushes",
    ),
    Preset(
        "linked rings",
        "Eight linked rings on a sphere are not separated; MAP@R ends below that of the untrained network.",
        "data=rings&dim=3&normalize=1&b.loss=facenet&b.m=0.2",
    ),
    Preset(
        "digits",
        "Handwritten digits (64 features) on a sphere: FaceNet's squared distances cluster them faster than distances.",
        "data=digits&dim=3&normalize=1&b.loss=facenet&b.m=0.2",
    ),
    Preset(
        "proxies, pairs",
        "Digits again: ProxyNCA++ learns one proxy per class; the contrastive loss compares pairs.",
        "data=digits&dim=3&normalize=1&a.loss=proxy_nca&b.loss=contrastive",
    ),
    Preset(
        "photographs",
        "Birds of unseen classes: a frozen SqueezeNet with average pooling and with generalized sum pooling.",
        f"data=cub&{IMAGES}&a.loss=multi_similarity&b.loss=multi_similarity&b.pooling=gsp",
    ),
    Preset(
        "glyphs",
        "Invented letters of unseen alphabets, embedded by a small network that was pretrained here.",
        f"data=glyphs&{IMAGES}&a.loss=multi_similarity&b.loss=proxy_anchor",
    ),
)
