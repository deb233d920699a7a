-- What of a log is not archived yet. The count of bytes that each entry carries tells how many came before it.
-- Gives the bytes of the log before `offset`, and the arrival of the first entry from there on, or nil.
local function bytes_before(log, bytes, offset)
  local entry = entry_at(log, offset)
  if not entry or place(entry[1]) + records_in(entry[2]) <= offset then
    entry = redis.call('XRANGE', log, word(offset), '+', 'COUNT', 1)[1]
  end
  if not entry then
    return bytes
  end
  local _, arrival = place(entry[1])
  return tonumber(field(entry[2], 'c')), arrival
end
