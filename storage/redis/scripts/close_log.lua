-- Close a log: from now on it takes no record, and says who does.
-- KEYS     1 meta
-- ARGV     1 store epoch  2 its children, as storage.domain.lineage packs them
-- Returns  { OK, next }: what it holds for ever ends there; or what lib/answers.lua says
-- Keeps    S1, S2: it is closed once, between two appends; later calls change nothing
-- @include answers
-- @include wake
-- @include writable
local held = redis.call('HMGET', KEYS[1], 'next', 'ceiling', 'store_epoch', 'deleted', 'closed')
local refused = refusal(held[1], held[2], held[3], held[4], ARGV[1], 0)
if refused then
  return refused
end
if not held[5] then
  redis.call('HSET', KEYS[1], 'closed', ARGV[2])
  wake(KEYS[1])
end
return { OK, tonumber(held[1]) }
