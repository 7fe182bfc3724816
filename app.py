"""Entry point of DML Lab. Start it with `streamlit run app.py`, `python app.py` or `uvicorn app:app`."""

import os
import sys
from pathlib import Path

import streamlit as st
from starlette.middleware import Middleware
from streamlit import config

ROOT = Path(__file__).resolve().parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from dmlcore.catalogue import load_plugins  # noqa: E402  (the path must stand first)

load_plugins()  # a plugin that cannot be imported stops the server here
if os.environ.get("DML_NETWORKS"):  # names of the user's own networks, which workers import from this folder
    from dmlcore.spec.own_network import remember_folder  # loads pydantic

    remember_folder()

from pages._server import ROUTES, lifespan  # noqa: E402
from pages.shared.server.guard import Guard  # noqa: E402
from pages.shared.server.head import Head  # noqa: E402
from pages.shared.server.measured import Metering  # noqa: E402

# `streamlit run` sets this option. Without it, a server started by uvicorn or `python app.py` from another folder would
# not find .streamlit/config.toml.
config._main_script_path = config._main_script_path or __file__

MIDDLEWARE = [Middleware(Metering), Middleware(Guard), Middleware(Head)]
app = st.App(ROOT / "pages" / "_main.py", routes=ROUTES, lifespan=lifespan, middleware=MIDDLEWARE)

if __name__ == "__main__":
    app.run()
