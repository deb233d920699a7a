-- Read the replies to a request.
-- KEYS     1 reply: as put_reply.lua has it
-- ARGV     1 now_ms or empty
-- Returns  { now_ms, then for each reply, in order: when it was accepted, ms, a space and its content }
-- @include time
local answer = { now_at(ARGV[1]) }
local count = tonumber(redis.call('HGET', KEYS[1], 'count') or '0')
for number = 1, count do
  answer[number + 1] = redis.call('HGET', KEYS[1], number)
end
return answer
