"""The same server with short timeouts, so that tests of slow clients are quick."""

import sys

from polymnia.cli.main import main
from polymnia.transports.http import connection, sessions, stream

connection.HEAD_TIMEOUT_S = 1
connection.BODY_TIMEOUT_S = 1
connection.SEND_TIMEOUT_S = 1
sessions.UNUSED_IDLE_S = 0
stream.PULSE_S = 0.2

if __name__ == "__main__":
    sys.exit(main())
