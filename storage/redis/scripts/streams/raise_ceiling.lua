-- Allow the offsets that Postgres has reserved.
-- KEYS     1 meta
-- ARGV     1 ceiling  2 store epoch it was reserved under
-- Returns  1 raised, 0 it was as high already or the log is in another epoch
-- Keeps    S1: a ceiling of an older epoch is not a reservation of this one
local held = redis.call('HMGET', KEYS[1], 'ceiling', 'store_epoch')
if not held[1] or held[2] ~= ARGV[2] or tonumber(held[1]) >= tonumber(ARGV[1]) then
  return 0
end
redis.call('HSET', KEYS[1], 'ceiling', ARGV[1])
return 1
