"""Text of the About entry in Streamlit's menu: version, licence and citation."""

from __future__ import annotations

from functools import cache

import dmlcore

TITLE = "DML Lab: see and train deep metric learning"  # as in CITATION.cff
AUTHORS = "The DML Lab authors"


@cache
def text() -> str:
    """Return the text in Markdown."""
    return (
        f"**{TITLE}**\n\nVersion {dmlcore.__version__}, MIT licence.\n\n"
        "To cite it, together with the papers whose losses, poolings and protocols you used:\n\n"
        f"```\n@software{{dml_lab,\n  title = {{{TITLE}}},\n  author = {{{{{AUTHORS}}}}},\n"
        f"  version = {{{dmlcore.__version__}}}\n}}\n```"
    )
