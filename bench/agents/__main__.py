"""The command `python -m bench.agents`."""

import sys

from bench.agents.hooks import main

if __name__ == "__main__":
    sys.exit(main())
