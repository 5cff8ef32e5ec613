"""Fuzz one target, or all: `python -m tests.fuzz --seconds 100`.

It needs `pip install atheris`. `--keep` adds the inputs that reach new code to the corpus.
"""

import argparse
import logging
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.fuzz.corpus import MAX_INPUT_BYTES, read_corpus, write_corpus

NAMES = ("messages", "importers", "front-matter", "queries", "wal", "binlog")


def main() -> int:
    """Fuzz in a process for each target. Return 1 if an input breaks one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(NAMES))
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        _work(options.targets[0], Path(options.work), options.seconds)
        return 0
    failures = 0
    for target in options.targets or NAMES:
        failures += not _fuzz(target, options.seconds, keep=options.keep)
    return 1 if failures else 0


def _fuzz(target: str, seconds: int, *, keep: bool) -> bool:
    """Fuzz one target from its corpus on. Print the input that breaks it."""
    with TemporaryDirectory() as home:
        for folder in ("corpus", "new"):
            (Path(home) / folder).mkdir()
        for number, data in enumerate(read_corpus(target)):
            (Path(home) / "corpus" / str(number)).write_bytes(data)
        command = [sys.executable, "-m", "tests.fuzz", target, "--work", home]
        result = subprocess.run(
            [*command, "--seconds", str(seconds)], capture_output=True, text=True, check=False
        )
        lines = result.stderr.splitlines()
        runs = [line for line in lines if line.startswith(("Done", "stat::number_of_executed"))]
        print(f"{target}: {'; '.join(runs) or 'broken'}", flush=True)
        broken = sorted(Path(home).glob("broken-*"))
        if result.returncode:
            print(result.stdout, "\n".join(lines[-60:]), sep="\n")
        for path in broken:
            print(f"{path.name}: {path.read_bytes()!r}", flush=True)
        if keep and not result.returncode:
            # The fuzzer writes an input to "new" only if it reaches new code.
            inputs = [path.read_bytes() for path in Path(home).glob("[cn]*/*")]
            print(f"{target}: {write_corpus(target, inputs)} inputs in the corpus", flush=True)
        return not result.returncode


def _work(target: str, home: Path, seconds: int) -> None:
    """Run atheris in this process, which it ends."""
    try:
        atheris: Any = import_module("atheris")
    except ImportError:
        sys.exit("atheris is not installed; run `pip install atheris`")
    with atheris.instrument_imports(include=["polymnia"]):
        from tests.fuzz.targets import TARGETS
    folders = [str(home / "new"), str(home / "corpus")]
    limits = [f"-max_total_time={seconds}", "-print_final_stats=1"]
    options = [f"-max_len={MAX_INPUT_BYTES}", f"-artifact_prefix={home}/broken-", "-rss_limit_mb=0"]
    logging.disable()
    atheris.Setup([sys.argv[0], *limits, *options, *folders], TARGETS[target])
    atheris.Fuzz()


if __name__ == "__main__":
    sys.exit(main())
