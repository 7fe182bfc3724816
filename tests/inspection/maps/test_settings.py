"""Settings of a map: validation, storage as text, and identifiers from the settings that the method uses."""

import pytest

from dmlcore.inspection.maps.settings import Settings


def test_settings_that_make_the_same_map_share_a_name():
    assert Settings("pca", perplexity=50, seed=3).name == Settings("pca").name
    assert Settings("umap", perplexity=50).name == Settings("umap").name
    assert Settings(perplexity=30).name == Settings(perplexity=30.0).name
    names = {
        Settings().name,
        Settings(perplexity=31).name,
        Settings(iterations=501).name,
        Settings(seed=1).name,
        Settings("umap").name,
        Settings("umap", min_dist=0.2).name,
        Settings("pca").name,
    }
    assert len(names) == 7


def test_they_come_back_from_text():
    settings = Settings("umap", neighbours=7, min_dist=0.25, seed=5)
    assert Settings.from_json(settings.to_json()) == settings
    assert Settings.from_json(Settings("pca", seed=5).to_json()) == Settings("pca"), "unused settings are dropped"
    assert Settings.from_json('{"method": "pca"}') == Settings("pca")
    assert settings.words == "UMAP, 7 neighbours, least distance 0.25, 400 iterations, seed 5"
    for bad in ('{"colour": 1}', "[]", '{"seed": "a"}', "{"):
        with pytest.raises(ValueError, match=r"settings of a map|seed|Expecting"):
            Settings.from_json(bad)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("method", "isomap"),
        ("perplexity", 1),
        ("perplexity", float("nan")),
        ("perplexity", "30"),
        ("iterations", 99),
        ("iterations", 10**6),
        ("iterations", 300.0),
        ("neighbours", 1),
        ("min_dist", -0.1),
        ("seed", -1),
        ("seed", True),
    ],
)
def test_bad_settings_are_named(name, value):
    with pytest.raises(ValueError, match=f"^{name} must be"):
        Settings(**{name: value})
