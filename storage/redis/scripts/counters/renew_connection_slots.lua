-- Say how many of a namespace's places this process has taken, and whether there is room for that.
-- KEYS     1 places: a hash of how many each process has, and until when that counts: "<count> <until ms>"
-- ARGV     1 now_ms, or empty for the server's time  2 the process  3 its places, this one included  4 how long that counts
--          unless it is said again, ms  5 places of all processes at most, or empty to say it whatever the others have
-- Returns  { 1 if that is noted, 0 if it is too many and nothing changed, the places of the others }
-- Keeps    nothing: a process that is not heard of any more has no places
-- @include time
-- @include numbers
local now = now_at(ARGV[1])
local others = 0
local held = redis.call('HGETALL', KEYS[1])
for index = 1, #held, 2 do
  local count, until_ms = string.match(held[index + 1], '^(%d+) (%d+)$')
  if tonumber(until_ms) <= now then
    redis.call('HDEL', KEYS[1], held[index])
  elseif held[index] ~= ARGV[2] then
    others = others + tonumber(count)
  end
end
local own = tonumber(ARGV[3])
if ARGV[5] ~= '' and own + others > tonumber(ARGV[5]) then
  return { 0, others }
elseif own == 0 then
  redis.call('HDEL', KEYS[1], ARGV[2])
else
  redis.call('HSET', KEYS[1], ARGV[2], word(own) .. ' ' .. word(now + tonumber(ARGV[4])))
end
return { 1, others }
