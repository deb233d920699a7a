"""Limits of API processes: their number, and their heartbeats."""

from storage.domain.limits._shared import MIB, SECOND_MS

# API processes of a machine
CORES_OF_STORES = 2  # left to the stores and background work; on three cores or fewer, one process
API_PROCESSES_DEFAULT_MAX = 8  # with 8 Postgres connections each, of 100; one store is busy before
API_PROCESS_MEMORY_BYTES = 1024 * MIB  # of a machine: each uses up to half, and Valkey the rest

# Processes and their connections
PRESENCE_HEARTBEAT_MS = 3 * SECOND_MS
PRESENCE_STALE_MS = (
    10 * SECOND_MS
)  # a process without a heartbeat for this long, about three of them, is removed
PRESENCE_FAILING_MAX = 20  # objects that a process cannot serve, sent with each heartbeat
PRESENCE_SOCKETS_MAX = (
    500  # per process, sent with each heartbeat at about 300 bytes each; the rest are counted
)
