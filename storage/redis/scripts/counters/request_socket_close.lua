-- Ask a process to close a socket: it hears that with its next beat, for which it is woken.
-- KEYS     1 asked, as in beat_presence
-- ARGV     1 now_ms, or empty for the server's time  2 the process  3 the socket  4 what a wake-up of the process is called
-- Returns  1
-- Keeps    nothing: an ask that nobody hears is forgotten
-- @include time
-- @include numbers
redis.call('HSET', KEYS[1], ARGV[2] .. ' ' .. ARGV[3], word(now_at(ARGV[1])))
redis.call('PUBLISH', 'ms:wake', ARGV[4])
return 1
