-- Append a row to a chunk of a resource's time series.
-- KEYS     1 chunk
-- ARGV     1 life of a new chunk in seconds  2 what a new chunk begins with  3 the row
-- Returns  the length of the chunk
-- Keeps    a chunk can be read without the one before it; when it expires, no reader would have asked for it
if redis.call('EXISTS', KEYS[1]) == 1 then
  return redis.call('APPEND', KEYS[1], ARGV[3])
end
redis.call('SET', KEYS[1], ARGV[2] .. ARGV[3], 'EX', ARGV[1])
return #ARGV[2] + #ARGV[3]
