-- Say that a process is here, with its sockets, and hear which of these it is asked to close.
-- KEYS     1 seen: a hash of "<said at ms> <what the process says of itself>" by process
--          2 sockets: a hash of the sockets of each process  3 asked: a hash of when, ms, by "<process> <socket>"
-- ARGV     1 now_ms, or empty for the server's time  2 the process  3 what it says, or empty when it ends
--          4 its sockets  5 for how long it counts as seen, ms
-- Returns  the sockets to close, each told once
-- Keeps    nothing: what was said decides nothing
-- @include time
-- @include numbers
local now = now_at(ARGV[1])
local stale = now - tonumber(ARGV[5])
local asked, to_close = redis.call('HGETALL', KEYS[3]), {}
for index = 1, #asked, 2 do
  local process, socket = string.match(asked[index], '^(%S+) (%S+)$')
  if process == ARGV[2] then
    to_close[#to_close + 1] = socket
  end
  if process == ARGV[2] or tonumber(asked[index + 1]) <= stale then
    redis.call('HDEL', KEYS[3], asked[index])
  end
end
if ARGV[3] == '' then
  redis.call('HDEL', KEYS[1], ARGV[2])
  redis.call('HDEL', KEYS[2], ARGV[2])
else
  redis.call('HSET', KEYS[1], ARGV[2], word(now) .. ' ' .. ARGV[3])
  redis.call('HSET', KEYS[2], ARGV[2], ARGV[4])
end
return to_close
