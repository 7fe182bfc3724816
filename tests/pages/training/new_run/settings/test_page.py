"""Settings and Start without a browser: valid specs, refusal of invalid ones, one job per click."""

from __future__ import annotations

import hashlib
import json
import math
import shlex
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from urllib.parse import parse_qsl

import pytest
from streamlit.testing.v1 import AppTest

from dmlcore import data, losses, pooling
from dmlcore.catalogue import Slider
from dmlcore.experiments.protocols import ProtocolRequest
from dmlcore.jobs import launch
from dmlcore.jobs.launch import JobError
from dmlcore.models import pretrained
from dmlcore.spec import RunSpec, keys
from dmlcore.storage import download
from dmlcore.storage.runs import RunStore
from pages.shared.state.spec_link import command, overrides, presets
from pages.shared.widgets import machines
from pages.shared.widgets.spec_form import folders, preflight
from pages.shared.widgets.spec_form.preflight import Submits
from tests.data import layouts
from tests.members import in_one_case, note_member
from tests.pages.conftest import go_to, load_page, make_run
from tests.wording import says

TINY = ["data.name=toy", "schedule.steps=2", "batch.classes=4", "data.split=classes", "data.validation=none"]


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("DML_RUNS", str(tmp_path / "runs"))
    return RunStore()


@pytest.fixture
def open_page(store):
    def run(**query: str) -> AppTest:
        """Open the page, by default with the digits preset, which is the fastest."""
        return load_page("settings", **(query or {"base": "digits"}))

    return run


def onward(app: AppTest):
    """Return the link to the next step."""
    (link,) = (link.proto for link in app.get("page_link") if link.proto.label.startswith("Next"))
    return link


def leads_on(app: AppTest) -> bool:
    """Return True if the link from step 2 to step 3 is enabled."""
    return not onward(app).disabled


def visit(app: AppTest, page: str, query: str) -> AppTest:
    """Open another page in the same session."""
    go_to(app, page)
    app.query_params.clear()
    for key, value in parse_qsl(query):
        app.query_params[key] = value
    return app.run()


def started(app: AppTest) -> AppTest:
    """Open step 3 through the link of step 2."""
    return visit(app, "start", onward(app).query_string)


def shown_spec(app: AppTest) -> RunSpec:
    return RunSpec.from_toml(next(code.value for code in app.code if code.language == "toml"))


def test_the_first_form_is_the_default_spec(open_page):
    app = open_page(like="")
    assert shown_spec(app) == presets()["glyphs"]
    app = started(app)
    assert not app.exception
    assert not app.button(key="start").disabled
    assert [metric.value for metric in app.metric if "samples" in metric.label] == ["2,880", "960", "2,400"]


def test_a_preset_fills_the_whole_form(open_page):
    app = open_page()
    for name, spec in presets().items():
        with note_member(name):
            app.selectbox(key="train-preset").select(name).run()
            assert not app.exception
            assert shown_spec(app) == spec


def test_every_key_of_a_spec_has_a_widget_with_its_description_as_help(open_page):
    app = open_page()
    helps: set[str] = set()

    def look() -> None:
        assert not app.exception
        kinds = ("selectbox", "number_input", "text_input", "toggle", "slider")
        helps.update(widget.help for kind in kinds for widget in app.get(kind))

    look()  # settings of an mlp
    app.slider(key="train-loss-tcm").set_value(0.5).run()
    look()
    app.selectbox(key="train-preset").select("cub").run()
    for key, choice in {
        "pooling-name": "gsp",
        "data-crop": "resized",
        "batch-sampler": "neighbourhood",
        "schedule-decay": "step",
        "loss-name": "contrastive",
    }.items():
        app.selectbox(key=f"train-{key}").select(choice)
    app.run()
    for key in ("pooling-zero-shot", "optimiser-weight-decay"):
        app.number_input(key=f"train-{key}").set_value(0.1)
    for key in ("schedule-plateau", "loss-memory", "data-folds"):
        app.number_input(key=f"train-{key}").set_value(4)
    app.run()
    app.selectbox(key="train-data-fold-order").select("random")
    app.selectbox(key="train-model-start").select("file")
    app.run()
    look()
    app.number_input(key="train-loss-memory").set_value(0).run()
    app.number_input(key="train-conditioning-neighbours").set_value(16).run()
    look()
    app.selectbox(key="train-optimiser-name").select("sgd").run()
    app.selectbox(key="train-loss-name").select("proxy_nca").run()
    app.selectbox(key="train-model-freeze").select("backbone").run()
    look()
    app.selectbox(key="train-loss-name").select("contrastive_proxy").run()
    app.number_input(key="train-projection-pool").set_value(12).run()
    app.toggle(key="train-model-normalize").set_value(False).run()
    look()
    for key, choice in {"model-freeze": "none", "model-name": "conv4", "pooling-name": "gap"}.items():
        app.selectbox(key=f"train-{key}").select(choice).run()
    look()
    app.selectbox(key="train-loss-name").select("ranking").run()
    look()
    app.selectbox(key="train-data-name").select("omniglot_collage").run()
    look()
    # Excluded: data set and loss have their own help, and tables of parameters consist of sliders.
    left = {"data.name", "loss.name", "loss.parameters", "pooling.parameters", "miner.parameters"}
    left |= {"model.options", "method.name", "method.parameters"}  # for code of the user, which no form offers
    left.add("schedule.validate_test")  # for studies of selection on the test split
    left |= {key for key in keys() if key.startswith("fork.")}  # forks have their own page
    assert {key for key, field in keys().items() if field.description not in helps} == left


def test_only_what_applies_is_shown_and_handed_on(open_page):
    app = open_page()
    keys_of = lambda: {w.key for kind in ("selectbox", "number_input", "toggle") for w in app.get(kind)}  # noqa: E731
    assert not {"train-schedule-plateau-factor", "train-loss-memory", "train-data-crop", "train-data-folds"} & keys_of()
    app.selectbox(key="train-loss-name").select("contrastive").run()
    app.selectbox(key="train-miner-name").select("multi_similarity").run()
    app.number_input(key="train-loss-memory").set_value(3).run()
    spec = shown_spec(app)
    assert (spec.miner.name, spec.miner.parameters, spec.loss.memory) == ("multi_similarity", {"epsilon": 0.1}, 3)
    app.selectbox(key="train-loss-name").select("proxy_nca").run()  # takes neither tuples nor a memory
    spec = shown_spec(app)
    assert (spec.miner.name, spec.loss.memory) == ("all", 0)
    assert not {"train-miner-name", "train-loss-memory", "train-projection-pool"} & keys_of()
    assert "train-loss-learning-rate" in keys_of()
    # its proxies can be initialised from samples
    app.selectbox(key="train-loss-name").select("contrastive_proxy").run()
    assert "train-projection-weight" not in keys_of()
    app.number_input(key="train-projection-pool").set_value(12).run()
    app.number_input(key="train-projection-weight").set_value(0.001).run()
    spec = shown_spec(app)
    assert (spec.projection.pool, spec.projection.weight) == (12, 0.001)
    assert says(" ".join(text.value for text in app.markdown), "the 8 proxies", "farthest", "among 12")
    app.selectbox(key="train-loss-name").select("contrastive").run()
    assert shown_spec(app).projection.pool == 0
    assert "train-conditioning-by" not in keys_of()
    app.number_input(key="train-loss-memory").set_value(0).run()
    app.number_input(key="train-conditioning-neighbours").set_value(4).run()
    assert "train-conditioning-layers" in keys_of()
    assert says(" ".join(text.value for text in app.markdown), "its 4 nearest neighbours", "transductive")
    app.selectbox(key="train-conditioning-by").select("mean").run()  # has no parameters: all steps train the network
    spec = shown_spec(app)
    assert (spec.conditioning.neighbours, spec.conditioning.after) == (4, spec.schedule.steps)
    assert not {"train-conditioning-layers", "train-conditioning-after"} & keys_of()
    app.number_input(key="train-loss-memory").set_value(3).run()  # the memory stores embeddings of single samples only
    assert shown_spec(app).conditioning.neighbours == 0


def test_the_threshold_consistent_margin_is_added_to_the_chosen_loss(open_page):
    app = open_page()
    digest = shown_spec(app).digest()
    assert "train-loss-tcm-m-pos" not in {slider.key for slider in app.slider}
    app.slider(key="train-loss-tcm").set_value(0.5).run()
    app.slider(key="train-loss-tcm-m-pos").set_value(0.8).run()
    loss = shown_spec(app).loss
    assert (loss.name, loss.tcm, loss.tcm_m_pos, loss.tcm_m_neg) == ("ranking", 0.5, 0.8, 0.5)
    assert says(" ".join(text.value for text in app.caption), "Zhang et al. 2024", "= 0.5, $m_+$ = 0.8, $m_-$ = 0.5")
    assert leads_on(app)
    assert shown_spec(reopened(app)) == shown_spec(app)
    app = open_page(base="digits", set="loss.tcm=7")  # beyond the end of the slider
    assert shown_spec(app).loss.tcm == app.slider(key="train-loss-tcm").value == 7
    app.selectbox(key="train-loss-name").select("wedl").run()  # other similarities are compared with a threshold
    assert "train-loss-tcm" not in {slider.key for slider in app.slider}
    assert shown_spec(app).loss.tcm == 0
    app.selectbox(key="train-loss-name").select("ranking").run()
    app.slider(key="train-loss-tcm-m-neg").set_value(0.1).run()
    app.slider(key="train-loss-tcm").set_value(0.0).run()
    assert shown_spec(app).digest() == digest  # margins of no term make no other run


def test_a_backbone_starts_from_weights_a_run_or_a_file(open_page, no_weights, tmp_path):
    app = open_page(base="cub", set="model.name=resnet20;model.start=;model.freeze=none")
    assert shown_spec(app).model.start is None
    assert "ImageNet weights" not in app.selectbox(key="train-model-start").options, "ResNet20 has no such weights"
    app.selectbox(key="train-model-start").select("file").run()
    assert app.text_input(key="train-model-file").value == ""
    assert any("choose a file" in text.value for text in app.text)
    (tmp_path / "a.safetensors").touch()
    app.text_input(key="train-model-file").set_value(f"{tmp_path}/a.safetensors").run()
    assert shown_spec(app).model.start == f"{tmp_path}/a.safetensors"
    app.selectbox(key="train-model-start").select("run").run()
    assert any("No finished run" in caption.value for caption in app.caption)
    # the only file, trained on this data set, is preselected
    app.selectbox(key="train-model-start").select("imagenet").run()
    assert shown_spec(app).model.start == "resnet20-cifar10.pt"


@pytest.fixture
def no_weights(tmp_path, monkeypatch):
    """Return the data folder of a machine that has no published weights and cannot download any."""
    monkeypatch.setattr(pretrained, "search_folders", lambda: [tmp_path / "weights"])
    monkeypatch.setenv("DML_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "torch"))
    monkeypatch.setattr(download, "unreachable", lambda url: "no route")
    preflight._absent_weights.clear()
    (tmp_path / "weights").mkdir()
    return tmp_path / "weights"


def test_a_network_with_imagenet_weights_starts_from_those_that_are_here(open_page, no_weights, monkeypatch):
    app = open_page(base="glyphs")
    app.selectbox(key="train-model-name").select("squeezenet1_0").run()
    assert (shown_spec(app).model.start, shown_spec(app).data.image_size) == ("imagenet", 224)
    assert any("b66bff10.pth is not on this machine" in text.value for text in app.text), "before a run is made"
    assert not leads_on(app)
    assert started(app).button(key="start").disabled
    go_to(app, "settings").run()

    file, content = "squeezenet1_0-deep-compression.safetensors", b"as published"
    known = replace(pretrained.CHECKPOINTS[file], sha256=hashlib.sha256(content).hexdigest(), size=None)
    monkeypatch.setattr(pretrained, "CHECKPOINTS", {**pretrained.CHECKPOINTS, file: known})
    (no_weights / file).write_bytes(content)
    preflight._absent_weights.clear()
    assert any(file in text.value for text in app.run().text), "the remedy is named"
    app.selectbox(key="train-model-weights").select(file).run()
    assert leads_on(app)
    app.selectbox(key="train-model-name").select("conv4").run()
    assert (shown_spec(app).model.start, shown_spec(app).data.image_size) == (None, presets()["glyphs"].data.image_size)
    app.selectbox(key="train-model-name").select("squeezenet1_0").run()
    assert shown_spec(app).model.start == file, "available"
    assert leads_on(app)
    assert reopened(app).selectbox(key="train-model-weights").value == file


def test_a_published_protocol_fills_the_form_its_command_and_the_address(open_page):
    app = open_page()
    app.button_group(key="train-begin").set_value("Protocol").run()
    app.selectbox(key="train-protocol-name").select("karaman-2021-toy").run()
    assert not app.exception
    (entry, *_) = ProtocolRequest(protocol="karaman-2021-toy").entries()
    assert shown_spec(app) == entry.spec
    app.selectbox(key="train-protocol-loss").select("distance_sensitive").run()
    asked = ProtocolRequest(protocol="karaman-2021-toy", data="toy", loss="distance_sensitive")
    assert shown_spec(app) == asked.entries()[0].spec
    command = next(code.value for code in app.code if "dmlcore protocol" in code.value)
    assert command == "python -m dmlcore protocol karaman-2021-toy --data toy --loss distance_sensitive"
    again = reopened(app)
    assert shown_spec(again) == shown_spec(app)
    assert again.selectbox(key="train-protocol-loss").value == "distance_sensitive"
    app.number_input(key="train-batch-samples").set_value(4).run()
    assert any("Deviates from" in text.value and "Samples per class" in text.value for text in app.text)


def metrics(app: AppTest) -> dict[str, tuple[str, str]]:
    """Return value and delta of each metric by its label."""
    return {metric.label: (metric.value, metric.delta) for metric in app.metric}


def test_time_memory_and_parameters_are_told_before_the_start(open_page, store):
    told = metrics(started(open_page()))
    assert told["time"][0] == "not known yet"
    assert told["memory"][0].endswith("B")
    assert told["trainable parameters"][0] == "57,792"  # 64 x 256 + 256 x 128 + 128 x 64, and biases
    run = store.create(presets()["digits"].with_overrides(["seed=1"]))
    with run.lock():
        run.update(state="running")
        run.update(state="done", step=run.spec.schedule.steps, seconds=30.0)
    assert metrics(started(open_page()))["time"] == ("≈ 30 s", "from 1 finished run like it")
    frozen = metrics(started(open_page(base="glyphs", set="model.name=squeezenet1_0;model.freeze=backbone")))
    assert frozen["trainable parameters"] == (f"{512 * 32 + 32:,}", "735,424 frozen")  # of the embedding layer


def test_a_pooling_shows_its_sliders_its_formula_and_gives_a_valid_spec(open_page):
    if data.available("cub") is None:  # formulas are shown for a spec that can be trained only
        pytest.skip("the images of CUB-200-2011 are not on this machine")
    app = open_page()
    app.selectbox(key="train-preset").select("glyphs").run()  # images that need no download
    for name in pooling.names():
        app.selectbox(key="train-pooling-name").select(name).run()
        assert not app.exception, name
        spec = shown_spec(app)
        assert spec.pooling.name == name
        info = pooling.describe(name)
        assert info.resolve(spec.pooling.parameters) == info.resolve({})
        assert any(info.latex in latex.value for latex in app.latex)


def test_a_loss_shows_its_own_sliders_at_once_and_gives_a_valid_spec(open_page):
    app, given = open_page(), presets()["digits"].loss
    for name in losses.names():
        with note_member(name):
            app.selectbox(key="train-loss-name").select(name).run()
            assert not app.exception
            formula = losses.formula(name)
            sliders = {w.key for kind in ("slider", "select_slider") for w in app.get(kind)} - {"train-loss-tcm"}
            prefix = f"train-loss-{name.replace('_', '-')}-"
            assert sliders == {prefix + key for key, p in formula.sliders.items() if isinstance(p, Slider)}
            spec = shown_spec(app)
            assert set(spec.loss.parameters) == set(formula.sliders)
            start = given.parameters if given.name == name else {}
            assert losses.create(name, **spec.loss.parameters).hyper == losses.create(name, **start).hyper
            assert any(formula.energy_latex in latex.value for latex in app.latex)
    for name in losses.batch_names()[::4]:
        with note_member(name):
            app.selectbox(key="train-loss-name").select(name).run()
            explained = any("$P_i$: positives" in caption.value for caption in app.caption)
            assert explained == ("P_i" in losses.describe(name).latex)
            loss = shown_spec(app).loss
            assert (loss.name, loss.parameters) == (name, losses.describe(name).defaults)


def test_clamps_are_toggles_and_each_loss_keeps_its_values(open_page):
    app = open_page()
    app.selectbox(key="train-loss-name").select("distance_sensitive").run()
    app.slider(key="train-loss-distance-sensitive-r").set_value(1.5).run()
    app.toggle(key="train-loss-distance-sensitive-m2-open").set_value(True).run()
    assert shown_spec(app).loss.parameters["m2"] == math.inf
    app.selectbox(key="train-loss-name").select("ranking").run()
    assert shown_spec(app).loss.parameters == {"m": 0.5}
    app.selectbox(key="train-loss-name").select("distance_sensitive").run()
    app.toggle(key="train-loss-distance-sensitive-m2-open").set_value(False).run()
    app.toggle(key="train-loss-distance-sensitive-m1-data").set_value(True).run()
    app = reopened(app)
    parameters = shown_spec(app).loss.parameters
    assert (parameters["m1"], parameters["m2"], parameters["r"]) == ("data", 5.0, 1.5)
    next(widget for widget in app.toggle if widget.label == "$m_1$ from the data").set_value(False).run()
    assert shown_spec(app).loss.parameters["m1"] == -2.325


@pytest.mark.parametrize("name", ["plain", "a; b"])
def test_step_three_and_the_way_back_keep_what_step_two_shows(open_page, name):
    app = open_page()
    app.text_input(key="train-name").set_value(name)
    app.number_input(key="train-schedule-steps").set_value(77).run()
    wanted = shown_spec(app)
    app = started(app)
    if name == "plain":  # another user who opens the link
        app = load_page("start", **address(app))
        assert not app.exception
    else:  # ";" separates the settings of a link, so the session carries this name
        assert set(app.query_params) == {"data"}
    go_to(app, "settings").run()
    assert shown_spec(app) == wanted


def address(app: AppTest) -> dict[str, str]:
    return {key: value if isinstance(value, str) else value[0] for key, value in app.query_params.items()}


def reopened(app: AppTest, page: str = "settings") -> AppTest:
    """Open the page as another user who received the address by Copy link."""
    return load_page(page, **address(app))


def test_a_link_to_a_run_takes_its_spec_even_beyond_the_sliders_and_keeps_every_change(open_page, store):
    spec = presets()["toy"].with_overrides(["loss.name=facenet", "loss.m=40.0", "loss.m2=3.0", "seed=7", "name=mine"])
    app = open_page(like=store.create(spec).id)
    assert shown_spec(app) == spec
    app.selectbox(key="train-loss-name").select("contrastive").run()
    app.number_input(key="train-schedule-steps").set_value(77).run()
    again = shown_spec(reopened(app))
    assert (again.seed, again.loss.name, again.schedule.steps) == (7, "contrastive", 77)
    app.selectbox(key="train-preset").select("toy").run()
    assert shown_spec(reopened(app)) == presets()["toy"]


def test_an_old_address_that_the_browser_still_sends_loses_no_change(open_page):
    app = open_page(base="digits")
    app.number_input(key="train-schedule-steps").set_value(77).run()
    app.query_params.clear()
    app.query_params["base"] = "digits"  # the new address had not arrived when the next field changed
    app.number_input(key="train-schedule-validate-every").set_value(11).run()
    assert (shown_spec(app).schedule.steps, shown_spec(app).schedule.validate_every) == (77, 11)
    assert shown_spec(reopened(app)) == shown_spec(app)


def test_the_address_of_data_keeps_how_it_is_split(store):
    app = load_page("data", data="moons")
    app.selectbox(key="data-split-moons").select("classes").run()
    assert reopened(app, "data").selectbox(key="data-split-moons").value == "classes"


def test_data_that_are_chosen_once_more_lead_to_their_own_settings(open_page):
    app = load_page("data", data="toy")
    settings = onward(app).query_string
    assert shown_spec(visit(app, "settings", settings)).data.name == "toy"
    app.selectbox(key="train-data-name").select("moons").run()
    visit(app, "data", "data=toy")
    assert shown_spec(visit(app, "settings", settings)).data.name == "toy"


def test_settings_that_were_trained_already_lead_to_their_run(store):
    made = make_run(store.root, "data.split=samples", "data.validation=samples")
    app = load_page("start", like=made.id)
    links = [link.proto.query_string for link in app.get("page_link") if link.proto.label == "Open it"]
    assert links == [f"run={made.id}"]


def test_missing_files_are_refused_with_the_folder_and_the_remedy(open_page, tmp_path):
    app = open_page()
    app.selectbox(key="train-data-name").select("cub").run()
    app.text_input(key="train-data-root").set_value(str(tmp_path)).run()
    assert not app.exception
    assert any(str(tmp_path) in text.value and "Download" in text.value for text in app.text)
    assert not leads_on(app)
    assert app.warning[0].value == "The files of this data set were not found."


NO_NUMBERS = [
    ("schedule-steps", None, ("Steps", "required")),
    ("schedule-steps", 1e9, ("Steps", "1", "10,000,000", "1,000,000,000")),
    ("schedule-steps", 3.7, ("Steps", "whole number", "3.7")),
    ("schedule-validate-every", 0, ("Validate every", "1", "0")),
    ("seed", 2**32, ("Seed", "4,294,967,295", "4,294,967,296")),
]


def test_a_number_that_is_none_is_named_by_its_label_and_nothing_can_start(open_page):
    app = open_page()
    before = shown_spec(app)
    for key, typed, named in NO_NUMBERS:
        field = app.number_input(key=f"train-{key}")
        good = field.value
        field.set_value(typed).run()
        (said,) = (text.value for text in app.text)
        assert says(said, *named)
        assert any(said in below.value for below in app.sidebar.markdown)  # below the field
        assert not leads_on(app)
        if key != "seed":
            app.number_input(key=f"train-{key}").set_value(good)
    app.query_params.clear()
    go_to(app, "start").run()  # direct navigation, because the link is disabled
    assert app.button(key="start").disabled
    assert [text.value for text in app.text] == [said]
    go_to(app, "settings").run()
    assert leads_on(app)
    assert shown_spec(app) == before  # the invalid number of seeds has left no trace


def test_a_field_that_may_be_empty_is(open_page):
    app = open_page()
    app.selectbox(key="train-preset").select("cub").run()
    app.number_input(key="train-data-image-size").set_value(None).run()
    assert shown_spec(app).data.image_size is None
    assert not app.exception


@pytest.mark.parametrize(
    ("key", "value"),
    [("like", "../x"), ("set", "loss.m=abc"), ("set", "ks=" + "[" * 3000), ("set", "seed=" + "9" * 5000)],
)
def test_a_senseless_link_says_so_and_opens_the_default(open_page, key, value):
    """Links to all pages are in tests/faults/test_links.py."""
    app = open_page(**{key: value} | ({"base": "digits"} if key == "set" else {}))
    assert not app.exception
    assert len(app.warning) == 1
    assert shown_spec(app) == presets()["glyphs"]


def test_the_place_and_the_number_of_processes_are_in_estimate_command_and_run(open_page, store, monkeypatch):
    begun = []
    monkeypatch.setattr(launch, "start_process", lambda run, task, *more: begun.append((task, *more)))
    monkeypatch.setattr(machines.os, "cpu_count", lambda: 2)
    monkeypatch.setenv("DML_BACKENDS", "slurm:gpu?gpus=1")
    app = started(open_page())
    assert "--processes" not in app.code[0].value
    assert "Trained by" not in " ".join(caption.value for caption in app.caption)

    app.number_input(key="processes").set_value(2).run()
    assert app.code[0].value.endswith(" --processes 2")
    assert "Trained by 2 processes" in " ".join(caption.value for caption in app.caption)
    assert "--backend" not in app.code[0].value

    app.sidebar.selectbox(key="machine").select("slurm:gpu?gpus=1").run()
    assert app.number_input(key="processes").max > 2
    assert shlex.split(app.code[0].value)[-4:] == ["--processes", "2", "--backend", "slurm:gpu?gpus=1"]
    assert "Runs on SLURM (gpu), gpus 1" in " ".join(caption.value for caption in app.caption)
    app.button(key="start").click().run()
    (run,) = store.list()
    assert (run.state().processes, run.state().backend) == (2, "slurm:gpu?gpus=1")
    assert begun == [("train", "--backend", "slurm:gpu?gpus=1", "--processes", "2")]


@pytest.fixture
def begun(monkeypatch) -> list[tuple[str, str]]:
    """Jobs that would have started a process."""
    jobs = []
    monkeypatch.setattr(launch, "start_process", lambda run, task: jobs.append((run.id, task)))
    return jobs


def test_two_hundred_presses_with_one_token_start_one_job(store, begun):
    submits, spec = Submits(), RunSpec().with_overrides(TINY)
    with ThreadPoolExecutor(32) as pool:
        found = set(pool.map(lambda _: submits.launch("token", spec, store), range(200)))
    (run,) = store.list()
    assert found == {run.id}
    assert begun == [(run.id, "train")]


def test_many_tokens_do_not_pass_the_ceiling_and_a_refused_one_may_try_again(store, begun, monkeypatch):
    monkeypatch.setattr(launch, "MAX_QUEUED", 8)
    submits, spec = Submits(), RunSpec().with_overrides(TINY)
    waiting = [store.create(spec) for _ in range(7)]  # queued: their workers may be starting

    def press(number: int) -> str | None:
        try:
            return submits.launch(str(number), spec, store)
        except JobError:
            return None

    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(press, range(40)))
    (run_id,) = filter(None, found)
    assert len(store.list()) == 8
    refused = str(found.index(None))
    assert not submits.used(refused)
    waiting[0].delete()
    second = submits.launch(refused, spec, store)
    assert begun == [(run_id, "train"), (second, "train")]


CHANGES = [
    [],
    ["schedule.steps=100", "loss.m=0.25"],
    ["loss.name=distance_sensitive", "loss.m2=inf", "seed=3"],
    ["model.hidden=[]", "model.normalize=false", 'name=it\'s $x$ "here"'],
    ["data.name=cifar100", "data.root=/tmp/a folder", "model.name=resnet20", "device=cuda"],
    ["loss.name=location_aware", "loss.variant=rule", "optimiser.learning_rate=1e-5"],
]


@in_one_case(changes=CHANGES)
def test_the_command_line_gives_the_very_same_spec(changes):
    spec = presets()["digits"].with_overrides(changes)
    python, m, module, train, name, *rest = shlex.split(command(spec) or "")
    assert (python, m, module, train) == ("python", "-m", "dmlcore", "train")
    assert presets()[name].with_overrides(rest) == spec


def test_what_only_removing_a_key_can_reach_has_no_overrides():
    sized = presets()["digits"].with_overrides(["data.image_size=64"])
    assert overrides(sized, presets()["digits"]) is None


def test_data_and_network_fit_together_for_every_data_set(open_page, tmp_path, monkeypatch):
    for name in ("sop", "inshop"):  # otherwise the published lists with 100,000 rows would be read
        layouts.WRITERS[name](tmp_path / "data" / data.describe(name).folder)
    monkeypatch.setenv("DML_DATA", str(tmp_path / "data"))
    app = open_page()
    for name in data.names():
        app.selectbox(key="train-data-name").select(name).run()
        kind = data.describe(name).kind
        spec = shown_spec(app)
        if name in presets():
            assert spec.model == presets()[name].model
            assert app.selectbox(key="train-preset").value == name
        else:
            assert spec.data.name == name
            assert spec.model.name == {"vectors": "mlp", "images": "resnet20", "tokens": "tokens"}[kind]
            assert not any("must be left out" in text.value for text in app.text)


def test_a_set_with_its_own_splits_offers_no_other_and_the_next_one_its_default(open_page):
    app = open_page()
    app.selectbox(key="train-data-name").select("tokens").run()
    spec = shown_spec(app)
    assert (spec.data.split, spec.data.validation) == ("own", "own")
    assert shown_spec(reopened(app)) == spec
    assert command(spec) is not None
    assert not {"train-data-split", "train-data-validation"} & {box.key for box in app.selectbox}
    app = started(app)
    assert [m.value for m in app.metric if "samples" in m.label] == ["32,768", "2,048", "2,048"]
    go_to(app, "settings").run()
    app.selectbox(key="train-data-name").select("moons").run()
    assert (shown_spec(app).data.split, shown_spec(app).data.validation) == ("samples", "samples")


@pytest.fixture
def reads(monkeypatch):
    """Collect the folders in which data sets are searched."""
    seen = []
    for name in ("available", "load"):
        real = getattr(data, name)
        monkeypatch.setattr(
            data, name, lambda *args, real=real, **kw: (seen.append(kw.get("root") or args[1:]), real(*args, **kw))[1]
        )
    return seen


def test_a_folder_of_a_link_is_read_once_the_visitor_says_so(open_page, reads, tmp_path):
    folder = str(layouts.class_folders(tmp_path / "mine"))
    app = open_page(base="cub", set=f"data.name=folder;data.root={json.dumps(folder)};data.image_size=32")
    assert not app.exception
    assert any(text.value == folder for text in app.text), "must be shown unchanged"
    assert not any(folder in str(seen) for seen in reads), "must not be read"
    assert folder in address(reopened(app))["set"]
    app.button(key="read-folder").click().run()
    assert not app.exception
    assert shown_spec(app).data.root == folder
    assert folder in address(app)["set"]
    assert any(folder in str(seen) for seen in reads)
    assert [m.value for m in started(app).metric if m.label == "train samples"] == ["16"]
    assert not any(button.key == "read-folder" for button in app.button)


def test_a_folder_among_those_searched_for_data_is_read_at_once(open_page, monkeypatch, tmp_path):
    monkeypatch.setenv("DML_DATA", str(tmp_path))
    folder = str(layouts.class_folders(tmp_path / "mine"))
    app = open_page(base="cub", set=f"data.name=folder;data.root={json.dumps(folder)};data.image_size=32")
    assert [m.value for m in started(app).metric if m.label == "train samples"] == ["16"]
    outside = str(layouts.class_folders(tmp_path.with_name(tmp_path.name + "-outside")))
    known = RunSpec().with_overrides([f"data.root={json.dumps(folder)}"])
    assert folders.unread(known) is None
    for other in (outside, f"{folder}/../../{tmp_path.name}-outside", "/", "~", "~nobody", "a\0b"):
        assert folders.unread(known.model_copy(update={"data": known.data.model_copy(update={"root": other})}))
