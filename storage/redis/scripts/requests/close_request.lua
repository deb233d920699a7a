#!lua flags=allow-oom
-- Accept no further replies to a request whose deadline has passed, so that a reading of them is complete, and wake its callers.
-- KEYS     1 reply: as put_reply.lua has it
-- ARGV     1 now_ms or empty  2 when the replies expire, ms
-- Returns  { now_ms, 1, then for each reply: as lib/replies.lua has it }
-- Keeps    T13: a caller with a later deadline, and a clock that is set back, add no reply to those that were read
-- @include time
-- @include numbers
-- @include replies
local now = now_at(ARGV[1])
redis.call('HSET', KEYS[1], 'closed', '1')
keep_until(KEYS[1], tonumber(ARGV[2]), now)
wake_callers(KEYS[1])
return read_replies(KEYS[1], now)
