"""The command line: one module per command. Only this package prints."""
