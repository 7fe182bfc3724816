"""A spec without a hyper-parameter keeps its meaning forever, so that its digest may omit the hyper-parameter, too."""

from __future__ import annotations

from tests.golden import first_parameters
from tests.members import in_one_case

FIRST, TODAY = first_parameters.first(), first_parameters.today()


@in_one_case(section=TODAY)
def test_no_default_has_changed_since_it_came(section: str) -> None:
    for name, defaults in FIRST[section].items():
        assert TODAY[section].get(name) == defaults, (
            f"{section}.name = {name}: stored specs that leave its parameters out mean {defaults}. Keep these "
            "defaults: enter what has others under another name, or write the values into the presets"
        )


@in_one_case(section=TODAY)
def test_every_default_is_known_from_the_day_it_comes(section: str) -> None:
    assert TODAY[section].keys() <= FIRST[section].keys(), "run: python -m tests.golden.first_parameters"
