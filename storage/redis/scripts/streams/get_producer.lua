-- What a closed log remembers of a producer. It is frozen, so the answer is final.
-- KEYS     1 meta  2 prod  3 prod_old
-- ARGV     1 producer id
-- Returns  { OK, 1 if the log is closed, state as append_records.lua packs it, or empty }, or what
--          lib/status.lua says
-- @include status
-- @include two_generations
local held = redis.call('HMGET', KEYS[1], 'next', 'deleted', 'closed')
local absent = absence(held[2], held[1])
if absent then
  return absent
end
return { OK, held[3] and 1 or 0, recall(KEYS[2], KEYS[3], ARGV[1]) or '' }
