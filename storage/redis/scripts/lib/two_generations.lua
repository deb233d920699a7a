-- What a log remembers for a while, without a TTL on each item: two hashes, of which the older is
-- dropped when the newer has lasted a window or grown to its half of the cap. An item is so kept for one
-- to two windows; who needs an exact window stores the time beside the value.
local function recall(newer, older, field)
  return redis.call('HGET', newer, field) or redis.call('HGET', older, field)
end

local function remember(meta, newer, older, since, now, window_ms, items_max, field, value)
  local started = tonumber(redis.call('HGET', meta, since) or '0')
  local full = redis.call('HLEN', newer) * 2 >= items_max
  local begins = full or now - started >= window_ms
  if begins then
    if redis.call('EXISTS', newer) == 1 then
      redis.call('UNLINK', older)
      redis.call('RENAME', newer, older)
      if now - started >= 2 * window_ms then
        redis.call('UNLINK', older)
      end
    end
    redis.call('HSET', meta, since, word(now))
  end
  redis.call('HSET', newer, field, value)
  if begins then
    redis.call('PEXPIRE', newer, 3 * window_ms)  -- goes by itself when nobody writes to the log any more
  end
end
