-- Replies to a request. Files that use this include `numbers`.

-- Return the replies in order: { now_ms, 1 if the request is closed, then for each reply when it was accepted, ms, a space and its content }
local function read_replies(key, now)
  local count, closed = unpack(redis.call('HMGET', key, 'count', 'closed'))
  local answer = { now, closed and 1 or 0 }
  for number = 1, tonumber(count or '0') do
    answer[number + 2] = redis.call('HGET', key, number)
  end
  return answer
end

-- Keep the hash until a time in ms, or longer if another call with the request's idempotency key says so.
local function keep_until(key, until_ms, now)
  if until_ms > tonumber(redis.call('HGET', key, 'until') or '0') then
    redis.call('HSET', key, 'until', word(until_ms))
    redis.call('PEXPIRE', key, word(math.max(1, until_ms - now)))
  end
end

-- Wake the callers that wait for replies: there will be no others.
local function wake_callers(key)
  redis.call('PUBLISH', 'ms:wake', string.match(key, '{(.-)}'))
end
