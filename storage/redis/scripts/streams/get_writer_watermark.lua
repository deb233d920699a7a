-- Return a log's high-water marks of monotonic producers. Those of a closed log are final.
-- KEYS     1 meta  2 rising  3 rising_over  4 rising_over_old
-- ARGV     1.. producer ids
-- Returns  { OK, 1 if the log is closed, producers it knows, 1 if it remembers retired ones, for each id its
--          last sequence, -1 if it is not known, -2 if it is retired }, or what lib/status.lua says
-- @include status
-- @include numbers
-- @include two_generations
local NO_WATERMARK, WRITER_RETIRED = -1, -2
local held = redis.call('HMGET', KEYS[1], 'next', 'deleted', 'closed')
local absent = absence(held[2], held[1])
if absent then
  return absent
end
local remembers_retired = redis.call('EXISTS', KEYS[3], KEYS[4]) > 0 and 1 or 0
local answer = { OK, held[3] and 1 or 0, redis.call('HLEN', KEYS[2]), remembers_retired }
for _, id in ipairs(ARGV) do
  local last = redis.call('HGET', KEYS[2], id)
  if not last then
    last = recall(KEYS[3], KEYS[4], id) and WRITER_RETIRED or NO_WATERMARK
  end
  table.insert(answer, tonumber(last))
end
return answer
