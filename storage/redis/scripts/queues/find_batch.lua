-- Find what a message holds, dead or alive.
-- KEYS     as lib/queue.lua names them
-- ARGV     1 offset
-- Returns  { OK, batch v1, or empty when there is no such message }, or what lib/status.lua says
-- @include numbers
-- @include status
-- @include history
-- @include queue
-- @include existing_queue
local offset = ARGV[1]
local entry = redis.call('XRANGE', K.log, offset, offset, 'COUNT', 1)[1]
local letter = redis.call('HGET', K.dead_letters, offset)
return { OK, entry and entry[2][2] or kept_batch(offset) or letter and cmsgpack.unpack(letter)[4] or '' }
