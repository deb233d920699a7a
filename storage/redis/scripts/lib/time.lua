-- Now, in milliseconds. `given` is a test's clock; empty means the server's own. Time never runs
-- backwards within a log: it is at least the arrival of the log's last entry.
local told_now  -- what was last given

local function now_at(given, last_ms)
  local now
  if given == '' then
    local time = redis.call('TIME')
    now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
  else
    now = tonumber(given)
  end
  told_now = math.max(now, tonumber(last_ms or 0))
  return told_now
end
