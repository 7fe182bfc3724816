"""Presets of the Toy training page."""

from __future__ import annotations

from pages.shared.state.page_state import Preset

# # Captions describe 400 steps with seed 0.
IMAGES = "dim=64&normalize=1&classes=16&samples=4&optimiser=adam&rate=0.0003&part=test"
PRESETS = (  # # the first is opened by a URL without parameters and plays from a recording
    Preset(
        "moons",
        "Four pairs of interlocking moons, unfolded onto a plane: after 400 batches A has parted more of them than B, "
        "with each of five seeds (MAP@R 0.72 against 0.59 with this one).",
        "data=moons",
    ),
    Preset(
        "12 Gaussians",
        "Classes that overlap, so that no map can part them: how much of it does each loss make good?",
        "data=toy",
    ),
    Preset(
        "unseen classes",
        "The same two training runs, watched on the 16 classes they never see.",
        "data=toy&part=test",
    ),
    Preset(
        "pulls, pushes",
        "A only pulls, and all classes fall into one heap; B only pushes, and they fly apart without gathering.",
        "data=toy&a.moves=pulls&b.loss=ranking&b.m=0.1&b.moves=pushes",
    ),
    Preset(
        "linked rings",
        "Eight linked rings on a sphere: they do not come apart, and MAP@R ends below that of the untrained network.",
        "data=rings&dim=3&normalize=1&b.loss=facenet&b.m=0.2",
    ),
    Preset(
        "digits",
        "Handwritten digits, 64 features, on a sphere: the squares of FaceNet gather them faster than plain distances.",
        "data=digits&dim=3&normalize=1&b.loss=facenet&b.m=0.2",
    ),
    Preset(
        "proxies, pairs",
        "Digits once more: ProxyNCA++ learns one proxy a class, the contrastive loss compares pairs.",
        "data=digits&dim=3&normalize=1&a.loss=proxy_nca&b.loss=contrastive",
    ),
    Preset(
        "photographs",
        "Birds of classes never seen: a frozen SqueezeNet, average pooling beside generalized sum pooling.",
        f"data=cub&{IMAGES}&a.loss=multi_similarity&b.loss=multi_similarity&b.pooling=gsp",
    ),
    Preset(
        "glyphs",
        "Invented letters of alphabets never seen, seen by a small network that was trained here first.",
        f"data=glyphs&{IMAGES}&a.loss=multi_similarity&b.loss=proxy_anchor",
    ),
)
