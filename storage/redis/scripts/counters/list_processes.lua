-- Show the processes that were heard lately; what others said is forgotten.
-- KEYS     1 seen  2 sockets  3 asked, as in beat_presence
-- ARGV     1 now_ms, or empty for the server's time  2 for how long a process counts as seen, ms  3 1 with their sockets, or 0
-- Returns  a list of { said at ms, what the process says of itself, its sockets or '' }
-- Keeps    nothing: what was said decides nothing
-- @include time
local stale = now_at(ARGV[1]) - tonumber(ARGV[2])
local seen, told = redis.call('HGETALL', KEYS[1]), {}
for index = 1, #seen, 2 do
  local process = seen[index]
  local said, summary = string.match(seen[index + 1], '^(%d+) (.*)$')
  if tonumber(said) <= stale then
    redis.call('HDEL', KEYS[1], process)
    redis.call('HDEL', KEYS[2], process)
  else
    local sockets = ARGV[3] == '1' and redis.call('HGET', KEYS[2], process) or ''
    told[#told + 1] = { tonumber(said), summary, sockets }
  end
end
return told
