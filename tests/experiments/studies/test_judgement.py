"""What is said of two variants, and of a study whose seeds are folds."""

import re

from dmlcore.experiments import studies


def test_where_hundreds_of_seeds_were_needed_more_of_them_are_no_advice():
    study, found = studies.read("losses-omniglot"), studies.load("losses-omniglot").runs
    near = " ".join(studies.pair(study, found, ("Proxy-NCA, smoothed", "Cross-entropy")))
    assert re.search(r"More seeds will not settle this: to find such a difference .* takes \d{3} seeds of each", near)
    far = " ".join(studies.pair(study, found, ("Proxy-NCA, smoothed", "Entangled")))
    assert "will not settle" not in far
    assert re.search(r"To find such a difference .* takes \d seeds of each", far)


def test_where_seeds_are_folds_the_words_say_so_and_ask_for_no_more_of_them():
    study, found = studies.read("cub-squeezenet"), studies.load("cub-squeezenet").runs
    said = studies.judge(study, found).text
    two = " ".join(studies.pair(study, found, ("GSP", "GAP")))
    for words in (said, two):
        assert "paired over 4 folds" in words
        assert "seed" not in words
        assert "leads" not in words
    assert "share training classes" in said
    assert "test classes" in two or not found[0].classes


def test_a_study_with_questions_says_what_the_order_of_the_others_is_worth():
    study, found = studies.read("cub-squeezenet"), studies.load("cub-squeezenet").runs
    assert "the means differ by" in studies.judge(study, found).text
    named = [run for run in found if run.variant in ("GAP", "GSP")]
    assert "GSP is above" not in studies.judge(study, named).text, "the answers say it"
