"""The `millstream` command: starts the processes, and otherwise talks HTTP."""
