-- Read the first entries of an outbox, in the order of their sequences.
-- KEYS     1 meta  2 entries
-- ARGV     1 entries at most  2 bytes at most
-- Returns  { sequence, event } of each, at least one if there is any
-- Keeps    nothing: it changes nothing
local rows, bytes = {}, 0
for _, entry in ipairs(redis.call('XRANGE', KEYS[2], '-', '+', 'COUNT', ARGV[1])) do
  bytes = bytes + #entry[2][2]
  if #rows > 0 and bytes > tonumber(ARGV[2]) then
    break
  end
  rows[#rows + 1] = { string.match(entry[1], '^%d+'), entry[2][2] }
end
return rows
