-- A queue's stream view: a log of its own beside the queue's, with the same offsets, which keeps what was sent whatever
-- becomes of the messages. `view` has the form of a shard's log, and `view_meta` of its meta.
local view_bytes, view_added

-- From the next message on, which a log that lost its view begins with too.
local function begin_view(next_offset)
  redis.call('HSET', K.meta, 'view', '1')
  redis.call('HSET', K.view_meta, 'next', next_offset, 'start', next_offset, 'bytes', '0')
end

local function add_to_view(id, batch)
  view_bytes = view_bytes or tonumber(redis.call('HGET', K.view_meta, 'bytes'))
  redis.call('XADD', K.view, id, 'c', word(view_bytes), 'd', batch)
  view_bytes, view_added = view_bytes + #batch, true
end

-- What was added can be read.
local function end_view(next_offset, now)
  if not view_added then
    return
  end
  redis.call('HSET', K.view_meta, 'next', word(next_offset), 'last_ms', word(now), 'bytes', word(view_bytes))
  if redis.call('HDEL', K.view_meta, 'waiting') == 1 then
    redis.call('PUBLISH', 'ms:wake', string.match(K.meta, '{(.-)}') .. ':view')
  end
end
