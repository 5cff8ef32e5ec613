"""`python -m polymnia`: the same command line as `polymnia`."""

from polymnia.cli import start

start()
