"""Number of API processes that `up` and `serve` start by default."""

from storage.domain.limits._shared import MIB

# API processes of a machine
CORES_OF_STORES = 2  # left to the stores and background work; on three cores or fewer, one process
API_PROCESSES_DEFAULT_MAX = 8  # with 8 Postgres connections each, of 100; one store is busy before
API_PROCESS_MEMORY_BYTES = 1024 * MIB  # of a machine: each uses up to half, and Valkey the rest
