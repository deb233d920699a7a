-- Close a log: from now on it takes no record, and says who does.
-- KEYS     1 meta
-- ARGV     1 store epoch  2 its children, as storage.domain.streams.lineage packs them, or empty: only tell
--          3 the fence that they were given, or empty
-- Returns  { OK, 1 if it is closed, its fence }: not closed when its fence is another one, which the children
--          must be given first; or what lib/status.lua says
-- Keeps    S1, S2: it is closed once, between two appends; later calls change nothing
-- @include status
-- @include notify
-- @include writable
local held = redis.call('HMGET', KEYS[1], 'next', 'ceiling', 'store_epoch', 'deleted', 'closed', 'fence')
local refused = refusal(held[1], held[2], held[3], held[4], ARGV[1], 0)
if refused then
  return refused
end
local fence = held[6] or ''
if held[5] then
  return { OK, 1, fence }
elseif ARGV[2] == '' or fence ~= ARGV[3] then
  return { OK, 0, fence }
end
redis.call('HSET', KEYS[1], 'closed', ARGV[2])
wake(KEYS[1])
return { OK, 1, fence }
