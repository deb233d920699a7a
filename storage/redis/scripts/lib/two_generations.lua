-- What a log remembers for a while, without a TTL on each item: two hashes, of which the older is
-- dropped when the newer has lasted a window or grown to its half of the cap. An item is so kept for one
-- to two windows; who needs an exact window stores the time beside the value.
local function recall(newer, older, field)
  return redis.call('HGET', newer, field) or redis.call('HGET', older, field)
end

-- Values of several fields, by field, in a call for each hash.
local MANY = 1000

local function recall_many(newer, older, fields)
  local values = {}
  for _, key in ipairs(redis.call('EXISTS', older) == 1 and { older, newer } or { newer }) do
    for first = 1, #fields, MANY do
      local known = redis.call('HMGET', key, unpack(fields, first, math.min(first + MANY - 1, #fields)))
      for nth, value in ipairs(known) do
        if value then
          values[fields[first + nth - 1]] = value
        end
      end
    end
  end
  return values
end

-- Remember fields, each followed by its value; without any, nothing happens.
local function remember_many(meta, newer, older, since, now, window_ms, items_max, items)
  if #items == 0 then
    return
  end
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
  for first = 1, #items, MANY do
    redis.call('HSET', newer, unpack(items, first, math.min(first + MANY - 1, #items)))
  end
  if begins then
    redis.call('PEXPIRE', newer, 3 * window_ms)  -- goes by itself when nobody writes to the log any more
  end
end

local function remember(meta, newer, older, since, now, window_ms, items_max, field, value)
  remember_many(meta, newer, older, since, now, window_ms, items_max, { field, value })
end
