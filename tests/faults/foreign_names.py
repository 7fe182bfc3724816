"""Folder names as written by old archives and other systems: 40 names in five encodings."""

from __future__ import annotations

import os
from pathlib import Path

from PIL import Image

WORDS = {
    "utf-8": ("Änte", "Żubr", "Ёж", "猫", "गाय", "می‌خواهم", "a\u202eb", "🦉 owl"),
    "latin-1": ("Bär", "Löwe", "Fuß", "Élan", "Ñandú", "Çà", "Å", "æø"),
    "koi8-r": ("ёж", "кот", "волк", "заяц", "сова", "рысь", "лось", "барсук"),
    "shift_jis": ("猫", "犬", "鳥", "魚", "ソース", "表", "熊", "狐"),
    "gb18030": ("龙", "马", "羊", "猴", "鸡", "猪", "鼠", "牛"),
}
NAMES = tuple(word.encode(encoding) for encoding, words in WORDS.items() for word in words)


def write(folder: Path, each: int = 4) -> None:
    """Write a folder of class folders with these names, with files of the same names, one colour per image."""
    for number, name in enumerate(NAMES):
        place = os.path.join(os.fsencode(folder), name)
        os.makedirs(place)
        for sample in range(each):
            path = os.path.join(place, name + b"%d.png" % sample)
            Image.new("RGB", (20, 16), (number * 6, sample * 40, 90)).save(os.fsdecode(path))
