from dmlcore import losses


def test_no_two_losses_share_a_title():
    titles = [losses.describe(name).title for name in losses.LOSSES]
    assert len(titles) == len(set(titles))
