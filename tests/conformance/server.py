"""The server that the suites test: their dialect on the real HTTP transport."""

from tests.conformance.dialect import CONFORMING
from tests.interop.serving import serve

if __name__ == "__main__":
    serve(CONFORMING)
