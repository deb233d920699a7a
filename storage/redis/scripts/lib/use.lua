-- Note that a queue that expires when it is idle is in use: only such a queue has the field `used` in its meta, which
-- expire_queue.lua sets first. It needs queue.
local USED_STEP = 1000  -- ms; a use so soon after the noted one is not noted, which expire_queue.lua allows for

local function note_use(used, now)
  if used and now - tonumber(used) >= USED_STEP then
    redis.call('HSET', K.meta, 'used', word(now))
  end
end
