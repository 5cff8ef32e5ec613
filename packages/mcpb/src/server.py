"""The bundle's entry point: `polymnia serve`."""

from polymnia.cli.main import main

raise SystemExit(main(["serve"]))
