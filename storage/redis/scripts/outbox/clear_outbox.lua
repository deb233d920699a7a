-- Remove entries of an outbox that are in their target.
-- KEYS     1 meta  2 entries
-- ARGV     the sequences
-- Returns  nothing
-- Keeps    E5: an entry leaves only when its target has it
-- @include numbers
local removed, bytes = 0, 0
for _, sequence in ipairs(ARGV) do
  local entry = redis.call('XRANGE', KEYS[2], sequence, sequence)[1]
  if entry then
    bytes = bytes + #entry[2][2]
    removed = removed + redis.call('XDEL', KEYS[2], entry[1])
  end
end
if removed > 0 then
  redis.call('HSET', KEYS[1], 'bytes', word(math.max(0, tonumber(redis.call('HGET', KEYS[1], 'bytes') or '0') - bytes)))
end
