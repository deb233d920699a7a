"""Private Valkey and Postgres servers: their binaries, start and readiness.

The data directory of one deployment:

    DATA/valkey/      the append-only file, valkey.conf
    DATA/postgres/    the cluster of Postgres; postgres.new while initdb runs
    DATA/logs/        valkey.log, postgres.log
    DATA/run/         unix sockets, each in a directory of mode 0700; elsewhere when DATA is too
                      deep for the 107 bytes a socket's path may have, or has a comma (`sockets`)

Nothing here keeps a process running: that is the supervisor's task. Every child is started with
`processes.child_setup`, which ties it to its parent: when the parent ends, in any way, the child ends too.
"""
