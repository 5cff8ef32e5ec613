"""The memory that a script gets: a path, or the address of a server and a token."""

import sys

import polymnia
from polymnia_frameworks import connect


def open_memory():
    location, token = sys.argv[1:3]
    if location.startswith("http"):
        return connect(location, token=token, by="frameworks")
    return polymnia.open(location, by="frameworks")
