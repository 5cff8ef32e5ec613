"""`python -m polymnia`: the same command line as `polymnia`."""

from polymnia.cli.main import run_and_exit

run_and_exit()
