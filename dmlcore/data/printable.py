"""Names that any page, file and terminal can show: unprintable characters and bytes that are not UTF-8 are escaped."""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Sequence

LONGEST = 200  # characters in the name of a class
_JOINERS = "\u200c\u200d"  # unprintable to Python, but part of words in Persian and Hindi, and of emoji
_SURROGATES = re.compile("[\ud800-\udfff]")


def encodable(text: str) -> str:
    r"""Return text with undecodable bytes escaped, such as the byte 0xFF of a file name, which becomes \xff."""
    return _SURROGATES.sub(lambda match: _escaped(match[0]), text)


def printable(text: str, longest: int = sys.maxsize) -> str:
    """Return text with unprintable characters escaped; text longer than `longest` is truncated and gets a digest."""
    if not text.isprintable():
        text = "".join(sign if sign.isprintable() or sign in _JOINERS else _escaped(sign) for sign in text)
    return text if len(text) <= longest else f"{text[: longest - 10]}… {_digest(text)}"


def printable_names(names: Sequence[str], longest: int = LONGEST) -> Sequence[str]:
    """Return names made printable; different names stay different."""
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
