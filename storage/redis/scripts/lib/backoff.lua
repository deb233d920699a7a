-- How long a message waits after a failure, when its consumer does not say. The policy is
-- { kind, initial ms, multiplier, max ms, delays in ms, jitter, seed }; `failures` is at least 1.
--   fixed        initial                         none   the delay itself
--   linear       initial * failures              full   anything from 0 to the delay
--   exponential  initial * multiplier^(n - 1)    equal  half of the delay, and anything up to its other half
--   list         the nth of delays, or the last
local function backoff_ms(policy, offset, failures)
  local kind, initial, multiplier, max_ms, delays, jitter, seed = unpack(policy)
  local delay = initial
  if kind == 'linear' then
    delay = initial * failures
  elseif kind == 'exponential' then
    delay = initial * multiplier ^ math.min(failures - 1, 64)
  elseif kind == 'list' then
    delay = delays[math.min(failures, #delays)]
  end
  delay = math.min(delay, max_ms)
  -- Scripts have no random numbers of their own: a digest of what is different each time serves.
  local chance = tonumber(string.sub(redis.sha1hex(seed .. ' ' .. offset .. ' ' .. failures), 1, 8), 16) / 4294967295
  if jitter == 'full' then
    delay = delay * chance
  elseif jitter == 'equal' then
    delay = delay / 2 + delay / 2 * chance
  end
  return math.floor(delay)
end
