"""The official conformance suites, held against the real HTTP transport."""
