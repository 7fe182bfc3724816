"""Plain English: names that CONTRIBUTING.md retires, and phrases that a reader would have to translate."""

from __future__ import annotations

import ast
import io
import re
import subprocess
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
TABLE = re.compile(r"^\| `(.+?)` \| (.+?) \| (.+?) \|$", re.MULTILINE)  # retired words, replacements, folders

# Phrases (regular expressions) with their replacements.
PHRASES = {
    r"anew": "again, or a verb with re-",
    r"beside": "next to, in addition to, compared with",
    r"begun": "started",
    r"trainings|(a|each|every) training(?=[.,;:]| (and|does|is|has|that|which|of)\b)": "training run(s)",
    r"(is|are|was|were|be) (told(?! apart)|said(?! to))|told by": "reported, passed, displayed",
    r"(says?|tells?|told|said) of (it|them)(self|selves)?": "describes itself",
    r"cannot be told apart": "no significant difference",
    r"asked for": "requested",
    r"at work": "running",
    r"whoever|whatever (it|they) (is|are)( of)?|what of|what stands": "name the person or thing",
    r"(is|are) none of (the|this|that|these|those|its|it|them|ours)": "does not belong to",
    r"the same of|of before|the other way round": "name the thing; previous; reversed",
    r"so many|as many as there are": "name the parameter",
    r"as (it|they) stands?|stands? (there|beside)": "unchanged; is next to",
    r"hands at once": "concurrent users",
    r"a sentence each|one each": "one sentence per thing",
    r"to be had|be had from": "available",
    r"practises on": "is trained on",
    r"(second|sentence|row|case|line) a (second|marble|case|row|step|run|page|line)": "one X per Y",
}
PHRASE = re.compile(rf"\b({'|'.join(PHRASES)})\b")  # in lower case
OPENING = re.compile(r"(What|Whatever|Whether|Who|Whoever|From what|By what)\b", re.IGNORECASE)
DOCSTRING_OPENING = re.compile(rf"{OPENING.pattern}|(Where|How|That|Of)\b")

PYTHON_COMMENT = re.compile(r"^\s*#+:?\s?", re.MULTILINE)
SCRIPT_COMMENT = re.compile(r"/\*.*?\*/|(?<![:\"'`\w])//[^\n]*(?:\n[ \t]*//[^\n]*)*", re.DOTALL)
SCRIPT_MARK = re.compile(r"^\s*(/\*+|\*/|\*|//+)|\*/$", re.MULTILINE)
VERBATIM = re.compile(
    r"^```.*?^```|``[^`]+``|`[^`]+`|\S*/\S*|(?<!\S)\.\w+", re.DOTALL | re.MULTILINE
)  # code, paths, CSS classes
MARKED_OPENING = re.compile(rf"(\"\"\"|#:?|/\*+|//)\s*({DOCSTRING_OPENING.pattern})", re.IGNORECASE)


def tracked(*suffixes: str) -> Iterator[tuple[str, str]]:
    """Yield the path and the text of each tracked file with one of these suffixes."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in listed.stdout.splitlines():
        if name.endswith(suffixes) and (ROOT / name).is_file():
            yield name, (ROOT / name).read_text("utf-8")


def retired_words() -> dict[str, tuple[str, ...]]:
    """Return the folders in which each retired word must not be a name ("" for all folders)."""
    folders: dict[str, tuple[str, ...]] = {}
    for words, _, where in TABLE.findall((ROOT / "CONTRIBUTING.md").read_text("utf-8")):
        inside = ("",) if where == "everywhere" else tuple(f"{folder}/" for folder in where.split(", "))
        for word in words.split():
            folders[word] = folders.get(word, ()) + inside
    return folders


def bound_names(tree: ast.AST) -> set[str]:
    """Return the names that a module binds: classes, functions, parameters, variables and imported names."""
    names = set()
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                names.add(name)
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name) | ast.alias(asname=str(name)):
                names.add(name)
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                names.update(alias.name.rpartition(".")[2] for alias in aliases)
    return names


def docstrings(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of each docstring of a Python module."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Module() | ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                if docstring := ast.get_docstring(node):
                    yield node.body[0].lineno, docstring


def comments(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of each comment of a Python module; consecutive comment lines are one comment."""
    block: list[tuple[int, str]] = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            own_line = not token.line[: token.start[1]].strip()
            if block and not (own_line and token.start[0] == block[-1][0] + 1):
                yield block[0][0], "\n".join(line for _, line in block)
                block = []
            block.append((token.start[0], token.string))
    if block:
        yield block[0][0], "\n".join(line for _, line in block)


def messages(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of each string of at least three words in a Python module, without docstrings."""
    tree = ast.parse(text)
    statements = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(string)) if len(string.split()) > 2 and id(node) not in statements:
                yield node.lineno, string


def flat(text: str) -> str:
    """Return a text in lower case and in one line."""
    return " ".join(text.lower().split())


def flaws(path: str, text: str) -> list[str]:
    """Return the refused phrases and openings of a file's prose, each with its line.

    Prose is documents, TOML files, docstrings and comments, and outside tests also messages in Python.
    """
    found: list[str] = []
    if not (MARKED_OPENING.search(text) or PHRASE.search(flat(re.sub(r"\n\s*(#|\*|//)", " ", text)))):
        return found  # most files; parsing all would take 15 s
    prose: list[tuple[int, str, re.Pattern[str] | None]]
    if path.endswith(".py"):
        prose = [(line, each, DOCSTRING_OPENING) for line, each in docstrings(text)]
        prose += [(line, PYTHON_COMMENT.sub("", each), OPENING) for line, each in comments(text)]
        if not path.startswith("tests/"):
            prose += [(line, each, None) for line, each in messages(text)]
    elif path.endswith((".md", ".toml")):
        prose = [(1 + text.count("\n", 0, m.start()), m[0], None) for m in re.finditer(r".+(\n.+)*", text)]
    else:
        matches = SCRIPT_COMMENT.finditer(text)
        prose = [(1 + text.count("\n", 0, m.start()), SCRIPT_MARK.sub("", m[0]).strip(), OPENING) for m in matches]
    for line, each, opening in prose:
        if opening and (match := opening.match(each)):
            found.append(f"{line}: opens with {match[0]!r}")
        found += [f"{line}: {match[0]!r}" for match in PHRASE.finditer(flat(VERBATIM.sub(" ", each)))]
    return found


def test_no_name_is_a_retired_word() -> None:
    words = retired_words()
    assert {"Workbench", "carry_over", "said"} <= words.keys(), "the table of CONTRIBUTING.md was not read"
    wrong = []
    for path, text in tracked(".py"):
        suspects = {word for word in set(re.findall(r"\w+", text)) & words.keys() if path.startswith(words[word])}
        if suspects:
            wrong += [f"{path}: {word}" for word in sorted(bound_names(ast.parse(text)) & suspects)]
    assert not wrong, "rename as CONTRIBUTING.md proposes: " + "; ".join(wrong)


def test_no_two_classes_of_the_library_and_the_pages_have_one_name() -> None:
    modules: dict[str, list[str]] = {}
    for path, text in tracked(".py"):
        if path.startswith(("dmlcore/", "pages/")):
            for name in re.findall(r"^ *class (\w+)[(:]", text, re.MULTILINE):
                modules.setdefault(name, []).append(path)
    assert len(modules) > 400
    assert not {name: paths for name, paths in modules.items() if len(paths) > 1}


def test_prose_is_plain_english() -> None:
    files = tracked(".py", ".js", ".ts", ".tsx", ".css", ".md", ".toml")
    found = [f"{path}:{flaw}" for path, text in files for flaw in flaws(path, text)]
    assert not found, f"{len(found)} passages; see PHRASES and the openings above:\n" + "\n".join(found[:60])
