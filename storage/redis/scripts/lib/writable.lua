-- The checks that come before every write that hands out offsets, in the order of the design: the log
-- exists, the store epochs agree, the offsets are reserved. Gives nil, or the answer to return.
local function refusal(next_offset, ceiling, epoch, deleted, store_epoch, wanted)
  local absent = absence(deleted, next_offset)
  if absent then
    return absent
  elseif tonumber(epoch) > tonumber(store_epoch) then
    return { CALLER_BEHIND, tonumber(epoch) }
  elseif tonumber(epoch) < tonumber(store_epoch) then
    return { LOG_BEHIND, tonumber(next_offset) }
  elseif tonumber(next_offset) + wanted > tonumber(ceiling) then
    return { AT_CEILING, tonumber(next_offset) }
  end
end
