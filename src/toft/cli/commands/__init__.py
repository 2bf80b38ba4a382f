"""One file per command: its `USAGE` (options, prose) and its `main(context) -> exit status`."""
