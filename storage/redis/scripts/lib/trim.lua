-- Let a log begin at `cut`: only whole entries are freed, and the logical start says what may be read. What
-- lies below it and is still there is freed by a later call.
local function cut_at(log, meta, start, next_offset, cut, entries_max)
  if cut > start then
    redis.call('HSET', meta, 'start', word(cut))
  end
  local holding = entry_at(log, cut)
  local edge = cut
  if holding then
    local first = place(holding[1])
    if first + records_in(holding[2]) > cut then
      edge = first
    end
  end
  local freed = redis.call('XTRIM', log, 'MINID', '~', word(edge), 'LIMIT', entries_max)
  if freed == 0 and edge == next_offset then
    freed = redis.call('XTRIM', log, 'MINID', word(edge))
  end
  return freed
end
