"""Retired words: a name says what the thing is, in the terms of CONTRIBUTING.md, "Words"."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
TABLE = re.compile(r"^\| `(.+?)` \| (.+?) \| (.+?) \|$", re.MULTILINE)  # retired words, what to say, where


def retired() -> dict[str, tuple[str, ...]]:
    """The folders ("" for all) that each retired word must not name anything in."""
    folders: dict[str, tuple[str, ...]] = {}
    for words, _, where in TABLE.findall((ROOT / "CONTRIBUTING.md").read_text("utf-8")):
        inside = ("",) if where == "everywhere" else tuple(f"{folder}/" for folder in where.split(", "))
        for word in words.split():
            folders[word] = folders.get(word, ()) + inside
    return folders


def suspects(words: dict[str, tuple[str, ...]]) -> Iterator[tuple[str, ast.Module, set[str]]]:
    """Of every Python file with a word in it that it must not use as a name: its path, its tree, those words."""
    listed = subprocess.run(["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True)
    for path in filter(lambda path: (ROOT / path).is_file(), listed.stdout.split()):
        text = (ROOT / path).read_text("utf-8")
        here = {word for word in set(re.findall(r"\w+", text)) & words.keys() if path.startswith(words[word])}
        if here:
            yield path, ast.parse(text), here


def names(tree: ast.AST) -> set[str]:
    """What a module binds: classes, functions, arguments of its functions, variables and imported names."""
    found = set()
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                found.add(name)
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name) | ast.alias(asname=str(name)):
                found.add(name)
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                found.update(alias.name.rpartition(".")[2] for alias in aliases)
    return found


def test_no_name_is_a_retired_word() -> None:
    words = retired()
    assert {"Workbench", "carry_over", "said"} <= words.keys(), "the table of CONTRIBUTING.md is not read"
    wrong = [f"{path}: {word}" for path, tree, here in suspects(words) for word in sorted(names(tree) & here)]
    assert not wrong, "say it as CONTRIBUTING.md does: " + "; ".join(wrong)


def test_a_retired_word_is_seen_in_every_place_that_names() -> None:
    text = "class Workbench: pass\ndef he(lip): kept = [whole for whole in x]\nimport a as Law\nfrom b import Watch"
    assert {"Workbench", "he", "lip", "whole", "Law", "Watch"} <= names(ast.parse(text))
    assert "anew" not in names(ast.parse('x = {"anew": 1}  # anew'))  # keys and words are no names


def test_no_two_classes_of_the_library_and_the_pages_have_one_name() -> None:
    modules: dict[str, list[str]] = {}
    for folder in ("dmlcore", "pages"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            for name in re.findall(r"^ *class (\w+)[(:]", path.read_text("utf-8"), re.MULTILINE):
                modules.setdefault(name, []).append(str(path.relative_to(ROOT)))
    assert len(modules) > 400
    assert not {name: paths for name, paths in modules.items() if len(paths) > 1}
