import pytest

from dmlcore import losses, mining
from dmlcore.losses import settings


@pytest.mark.parametrize("entry", settings.SETTINGS, ids=lambda e: f"{e.source}-{e.loss}-{e.data}")
def test_every_setting_builds_its_loss(entry: settings.Setting) -> None:
    loss = losses.for_training(entry.loss, classes=4, embedding_dim=3, **entry.parameters)
    assert entry.source in settings.SOURCES
    learned = list(loss.parameters())
    assert learned or (entry.learning_rate is None and entry.rate_factor is None)
    assert entry.learning_rate is None or entry.rate_factor is None
    assert entry.miner in mining.names()


def test_lookup_prefers_the_data_set_and_names_what_there_is() -> None:
    assert settings.stated("proxy_anchor", "gurbuz2022", "sop").learning_rate == 5e-6
    assert settings.stated("proxy_anchor", "gurbuz2022", "cub").rate_factor == 100
    assert settings.stated("contrastive", "gurbuz2022", "cars").parameters["m_neg"] == 0.5409
    assert settings.stated("soft_triple", "gurbuz2022", "sop").parameters["gamma"] == 47.9
    assert "gurbuz2022" in settings.sources("triplet")
    with pytest.raises(KeyError, match=r"no setting of triplet in gurbuz2022 for flowers; known: .*for cub"):
        settings.stated("triplet", "gurbuz2022", "flowers")
    keys = [(e.source, e.loss, e.data) for e in settings.SETTINGS]
    assert len(set(keys)) == len(keys)
