"""Run the official conformance suites against the real HTTP transport."""
