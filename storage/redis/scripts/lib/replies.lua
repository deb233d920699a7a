-- Replies to a request in their order: { now_ms, 1 if it is closed, then for each reply when it was accepted, ms, a space and its
-- content }
local function read_replies(key, now)
  local count, closed = unpack(redis.call('HMGET', key, 'count', 'closed'))
  local answer = { now, closed and 1 or 0 }
  for number = 1, tonumber(count or '0') do
    answer[number + 2] = redis.call('HGET', key, number)
  end
  return answer
end
