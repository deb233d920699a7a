-- Drop the tombstone of a deleted log, when no process can hold its definition any more.
-- KEYS     1 meta
-- Returns  1 dropped, 0 there was none
if redis.call('HEXISTS', KEYS[1], 'deleted') == 1 then
  return redis.call('UNLINK', KEYS[1])
end
return 0
