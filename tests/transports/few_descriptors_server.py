"""The same server with few file descriptors: POLYMNIA_TEST_DESCRIPTORS says how many."""

import os
import resource
import sys

from polymnia.cli.main import main

if __name__ == "__main__":
    limit = int(os.environ["POLYMNIA_TEST_DESCRIPTORS"])
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    sys.exit(main())
