-- Add to the histogram of a queue's times from send to acknowledgement.
-- KEYS     1 hash: bucket -> acknowledgements
-- ARGV     1 how long it is kept without acknowledgements, ms  then two for each bucket: its number, what it grows by
-- Returns  nothing of use
-- Keeps    nothing: no decision depends on it
for at = 2, #ARGV, 2 do
  redis.call('HINCRBY', KEYS[1], ARGV[at], ARGV[at + 1])
end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
