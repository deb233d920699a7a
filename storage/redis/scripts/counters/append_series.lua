-- Add samples of one resource to chunks of its time series, beginning those that are not there.
-- KEYS     1.. chunks
-- ARGV     for each: its life in seconds, what a new one begins with or empty, the samples
-- Returns  how many were not there and had nothing to begin with: those stay away
-- Keeps    a chunk can be read without the one before it; when it expires, no reader would have asked for it
local lacking = 0
for nth, chunk in ipairs(KEYS) do
  local life, begin, samples = ARGV[3 * nth - 2], ARGV[3 * nth - 1], ARGV[3 * nth]
  if redis.call('EXISTS', chunk) == 1 then
    redis.call('APPEND', chunk, samples)
  elseif begin == '' then
    lacking = lacking + 1
  else
    redis.call('SET', chunk, begin .. samples, 'EX', life)
  end
end
return lacking
