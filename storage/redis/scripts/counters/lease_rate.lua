-- Take what one process is about to spend of a policy's rates: storage.quotas.gcra, for all processes at once.
-- KEYS     1 rate: a hash of until when what has passed is paid for, by measure, microseconds
-- ARGV     1 now_ms, or empty for the server's time
--          then five for each measure: its name, what a unit takes at its rate and what the bucket holds, both in
--          microseconds, the units without which nothing is taken, and those wanted
-- Returns  two for each measure: the units granted, at most those wanted, and the debt that there is then, microseconds
-- Keeps    nothing: a rate that is lost begins with a full bucket. The key ends when it says nothing any more.
local KEPT_MS, ROUNDING = 3600000, 1e-6  -- a test's clock may stand while the server's goes on

local now
if ARGV[1] == '' then
  local time = redis.call('TIME')
  now = tonumber(time[1]) * 1000000 + tonumber(time[2])
else
  now = tonumber(ARGV[1]) * 1000
end
local answers, longest = {}, 0
for index = 2, #ARGV, 5 do
  local measure, unit, holds = ARGV[index], tonumber(ARGV[index + 1]), tonumber(ARGV[index + 2])
  local least, wanted = tonumber(ARGV[index + 3]), tonumber(ARGV[index + 4])
  local paid_until = tonumber(redis.call('HGET', KEYS[1], measure) or '0')
  local begins = math.min(math.max(paid_until, now), now + holds)
  local room = math.floor((now + holds - begins) / unit + ROUNDING)
  local granted = room >= least and math.min(wanted, room) or 0
  local paid = begins + granted * unit
  if granted > 0 then
    redis.call('HSET', KEYS[1], measure, string.format('%.17g', paid))
  end
  longest = math.max(longest, paid - now)
  answers[#answers + 1] = granted
  answers[#answers + 1] = math.ceil(paid - now)
end
if redis.call('EXISTS', KEYS[1]) == 1 then
  redis.call('PEXPIRE', KEYS[1], string.format('%.0f', longest / 1000 + KEPT_MS))
end
return answers
