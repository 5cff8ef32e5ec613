"""Run the failed tests of the last run again, alone and in one process.

    pytest ARGUMENTS || python -m tests.rerun $? ARGUMENTS

A test that passes now is printed as `flaky: NAME` and does not fail the gate. A test that fails
twice does. tests/flaky.md lists the tests that are known to be flaky.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

FLAKY_PAGE = Path(__file__).with_name("flaky.md")

# More failures than this are a defect, and running them one after the other takes too long.
MAX_FAILED = 30


def main() -> int:
    status, arguments = int(sys.argv[1]), sys.argv[2:]
    failed = failed_tests()
    # Any other status means that pytest did not run all tests.
    if status != 1 or not failed:
        return status
    if len(failed) > MAX_FAILED:
        print(f"{len(failed)} tests failed: at most {MAX_FAILED} are run again")
        return status

    print(f"running {len(failed)} failed tests again, in one process", flush=True)
    pytest = [sys.executable, "-m", "pytest", "-n", "0", "--last-failed", *arguments]
    second_status = subprocess.run(pytest).returncode
    if second_status not in (0, 1):
        return second_status

    failed_twice = failed_tests()
    known = known_flaky()
    for name in sorted(failed - failed_twice):
        note = f"known since {known[name]}" if name in known else "new: add it to tests/flaky.md"
        print(f"flaky: {name} ({note})")
    for name in sorted(failed_twice):
        print(f"failed twice: {name}")
    return second_status


def failed_tests() -> set[str]:
    """Return the names of the tests that failed when they ran last, as pytest's cache has them."""
    cache = Path(".pytest_cache/v/cache/lastfailed")
    return set(json.loads(cache.read_text("utf-8"))) if cache.exists() else set()


def known_flaky() -> dict[str, str]:
    """Return the date of each test in tests/flaky.md."""
    rows = re.findall(r"^\| `(.+?)` \| (\d{4}-\d\d-\d\d) \|", FLAKY_PAGE.read_text("utf-8"), re.M)
    return dict(rows)


if __name__ == "__main__":
    sys.exit(main())
