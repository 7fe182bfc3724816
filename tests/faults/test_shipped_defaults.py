"""Shipped defaults: each setting that exposes the app, reveals something about it or slows it down is pinned here."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib

import pytest

from tests.browser.harness import ROOT

SHIPPED = {
    "server": {
        "address": "127.0.0.1",  # listen on this machine only
        "maxUploadSize": 200,
        "maxMessageSize": 32,
        "maxWidgetStateSize": 8,
        "fileWatcherType": "none",
        "runOnSave": False,
        "enableCORS": True,
        "enableXsrfProtection": True,
        "enableStaticServing": False,
        "enableAgentApi": False,
        "scriptHealthCheckEnabled": False,
        "showEmailPrompt": False,
    },
    "global": {"maxCachedMessageAge": 20},
    "logger": {"hideWelcomeMessage": True},  # the greeting asks an external server for the public address
    "runner": {"postScriptGC": False, "magicEnabled": False},
    "client": {"showErrorDetails": "none", "toolbarMode": "viewer"},
    "browser": {"gatherUsageStats": False},
}


@pytest.fixture(scope="module")
def read_by_streamlit() -> dict[str, object]:
    """Return the settings of the started app, read from another working directory."""
    names = [f"{section}.{name}" for section, values in SHIPPED.items() for name in values]
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); import app; from streamlit import config"
    code += f"; print({{name: config.get_option(name) for name in {names}}})"
    command = [sys.executable, "-W", "ignore", "-c", code]
    said = subprocess.run(command, cwd="/", capture_output=True, text=True, check=True).stdout
    return dict(ast.literal_eval(said.strip().splitlines()[-1]))


def test_the_configuration_is_the_one_named_here():
    written = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text())
    assert {k: v for k, v in written.items() if k != "theme"} == SHIPPED


@pytest.mark.parametrize(("section", "name"), [(s, n) for s, values in SHIPPED.items() for n in values])
def test_each_default_is_in_force(read_by_streamlit, section, name):
    assert read_by_streamlit[f"{section}.{name}"] == SHIPPED[section][name]
