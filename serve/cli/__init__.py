"""The command line: one file a command group, `main` puts them together."""
