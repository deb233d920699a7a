"""Storage engines over a hot tier (Valkey or Redis) and a metadata tier (Postgres)."""
