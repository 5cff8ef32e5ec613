"""`python -m polymnia`: the same command line as `polymnia`."""

from polymnia.cli.main import main

raise SystemExit(main())
