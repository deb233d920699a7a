-- Read the first entries of an outbox, in the order of their sequences.
-- KEYS     1 entries
-- ARGV     1 entries at most  2 bytes at most
-- Returns  { { sequence, event } of each, at least one if there is any, 1 if none is behind them or 0 }
-- Keeps    nothing: it changes nothing
local entries = redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', tonumber(ARGV[1]) + 1)
local rows, bytes = {}, 0
for _, entry in ipairs(entries) do
  bytes = bytes + #entry[2][2]
  if #rows > 0 and (#rows == tonumber(ARGV[1]) or bytes > tonumber(ARGV[2])) then
    break
  end
  rows[#rows + 1] = { string.match(entry[1], '^%d+'), entry[2][2] }
end
return { rows, #rows == #entries and 1 or 0 }
