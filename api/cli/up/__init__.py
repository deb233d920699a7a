"""`millstream up`: the supervisor and the processes that it starts."""
