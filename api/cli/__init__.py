"""The `millstream` command. It starts the processes; everything else it does over HTTP."""
