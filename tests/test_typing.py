"""Array types are defined in one module only, so that a name means the same dtype everywhere."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
NAMED = r"NDArray\[(np\.(float64|float32|float16|int64|bool_|uint8)|Any)\]"


def test_no_module_spells_an_array_type_that_has_a_name():
    modules = [path for folder in ("dmlcore", "pages") for path in (ROOT / folder).rglob("*.py")]
    assert len(modules) > 300
    spelled = [f"{path.relative_to(ROOT)}: {found[0]}" for path in modules if path != ROOT / "dmlcore" / "typing.py"
               for found in re.finditer(NAMED, path.read_text())]  # fmt: skip
    assert not spelled
