"""A private Valkey and Postgres: where the binaries are, how they are started, when they are ready.

What lies in the data directory of one deployment:

    DATA/valkey/      the append-only file, valkey.conf
    DATA/postgres/    the cluster of Postgres; postgres.new while initdb runs
    DATA/logs/        valkey.log, postgres.log
    DATA/run/         unix sockets, each in a directory of mode 0700; elsewhere when DATA is too
                      deep for the 107 bytes a socket's path may have, or has a comma (`sockets`)

Nothing here keeps a process running: that is the supervisor's work. Every child is started with
`processes.child_setup`, which ties it to its parent: when the parent is gone, however it went, the
child ends too.
"""
