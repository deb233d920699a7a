#!lua flags=allow-oom
-- Advance the position of the store's data, by which copies of a replica set are compared.
-- KEYS     1 the store's hash
-- Returns  the new position
-- Keeps    D1: the furthest copy has every acknowledged write. Allowed without free memory, as acknowledgements are
return redis.call('HINCRBY', KEYS[1], 'position', 1)
