"""Escaping of unprintable characters and non-UTF-8 bytes in names, so that pages, files and terminals can show them."""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Sequence

LONGEST = 200  # maximum length of a class name in characters
_JOINERS = "\u200c\u200d"  # Python considers these unprintable, but words in Persian and Hindi, and emoji, contain them
_SURROGATES = re.compile("[\ud800-\udfff]")


def encodable(text: str) -> str:
    r"""Escape undecodable bytes in a string; a byte 0xFF in a file name becomes the four characters \xff."""
    return _SURROGATES.sub(lambda match: _escaped(match[0]), text)


def printable(text: str, longest: int = sys.maxsize) -> str:
    """Escape unprintable characters; truncate a text over `longest` characters and append a digest of the text."""
    if not text.isprintable():
        text = "".join(sign if sign.isprintable() or sign in _JOINERS else _escaped(sign) for sign in text)
    return text if len(text) <= longest else f"{text[: longest - 10]}… {_digest(text)}"


def printable_names(names: Sequence[str], longest: int = LONGEST) -> Sequence[str]:
    """Escape and truncate each name like `printable`; append digests if different names would become equal."""
    if all(name.isprintable() and len(name) <= longest for name in names):
        return names
    made = [printable(name, longest) for name in names]
    if len(set(made)) < len(set(names)):
        made = [
            new if new == old else f"{printable(old, longest - 10)} {_digest(old)}"
            for old, new in zip(names, made, strict=True)
        ]
    return tuple(made)


def _escaped(sign: str) -> str:
    code = ord(sign)
    return f"\\x{code - 0xDC00:02x}" if 0xDC80 <= code <= 0xDCFF else sign.encode("unicode_escape").decode()


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:8]
