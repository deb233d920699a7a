-- Retire monotonic producers: delete their high-water marks, and reject their late records for a while.
-- KEYS     1 meta  2 rising  3 rising_over  4 rising_over_old
-- ARGV     1 now_ms or empty  2 how long a retired one is remembered, ms  3 how many of them at most
--          4.. producer ids
-- Returns  { OK, how many of them the log knew }, or what lib/status.lua says
-- Keeps    S4 a repeated produce adds nothing, also by a straggler
-- @include status
-- @include numbers
-- @include time
-- @include two_generations
local FIRST_ID = 4
local held = redis.call('HMGET', KEYS[1], 'next', 'deleted', 'last_ms')
local absent = absence(held[2], held[1])
if absent then
  return absent
end
local now = now_at(ARGV[1], held[3])
local known = 0
for index = FIRST_ID, #ARGV do
  local id = ARGV[index]
  known = known + redis.call('HDEL', KEYS[2], id)
  if not recall(KEYS[3], KEYS[4], id) then
    remember(KEYS[1], KEYS[3], KEYS[4], 'over_since', now, tonumber(ARGV[2]), tonumber(ARGV[3]), id, '1')
  end
end
return { OK, known }
