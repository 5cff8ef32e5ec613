"""The same server with little patience, so that tests of clients that dawdle need not last as long as they do."""

import sys

from polymnia.cli.main import main
from polymnia.transports.http import connection, sessions

connection._REQUEST_PATIENCE = 1
connection._ANSWER_PATIENCE = 1
sessions._UNUSED_YIELDS_AFTER = 0

if __name__ == "__main__":
    sys.exit(main())
