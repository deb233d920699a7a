-- Read what has happened to a message, oldest first, from what is left of the queue's history.
-- KEYS     as lib/queue.lua names them
-- ARGV     1 offset, or empty for every message  2 read those after this event, or empty to begin  3 how many events to
--          look at, at most
-- Returns  { OK, the event looked at last, or '' when there are no more, event... }, or what lib/status.lua says. An
--          event is { offset, or '*' for every message before `number`, what, at ms, until ms or 0, number or 0, why,
--          details or '' }
-- @include status
local held = redis.call('HMGET', KEYS[2], 'next', 'deleted')
local absent = absence(held[2], held[1])
if absent then
  return absent
end
local wanted, after = ARGV[1], ARGV[2] == '' and '-' or '(' .. ARGV[2]
local found = redis.call('XRANGE', KEYS[31], after, '+', 'COUNT', ARGV[3])
local answer = { OK, #found == tonumber(ARGV[3]) and found[#found][1] or '' }
for _, entry in ipairs(found) do
  local offset = entry[2][2]
  if wanted == '' or offset == wanted or offset == '*' then
    local what, at, until_ms, number = unpack(cmsgpack.unpack(entry[2][4]))
    answer[#answer + 1] = { offset, what, at, until_ms, number, entry[2][6], entry[2][8] or '' }
  end
end
return answer
