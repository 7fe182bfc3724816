"""Script that downloads from a local server in a separate process: python served.py URL FOLDER SHA256 SIZE."""

import sys
from pathlib import Path

from dmlcore.data.files import archives, sources


def pin(url: str, sha256: str, size: int) -> None:
    """Pin the archive at `url` in place of the official one of CUB."""
    known = archives.Archive("CUB_200_2011.tgz", size, sha256)
    archives.KNOWN = (known, *(other for other in archives.KNOWN if other.name != known.name))
    sources.SOURCES = {"cub": sources.DataSource("terms", ("tree",), (url,))}


if __name__ == "__main__":
    url, into, sha256, size = sys.argv[1:]
    pin(url, sha256, int(size))
    print(sources.download("cub", Path(into), loopback=True, pause=0.0))
