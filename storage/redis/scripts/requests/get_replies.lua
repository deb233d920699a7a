-- Read the replies to a request.
-- KEYS     1 reply: as put_reply.lua has it
-- ARGV     1 now_ms or empty
-- Returns  { now_ms, 1 if the request is closed, then for each reply: as lib/replies.lua has it }
-- @include time
-- @include numbers
-- @include replies
return read_replies(KEYS[1], now_at(ARGV[1]))
