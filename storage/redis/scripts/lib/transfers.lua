-- Messages on their way from this queue, as those who transfer them see them. It needs queue.

-- { position, offset, arrival ms, group, receives, first received ms, batch, move id or empty, priority, expires ms or 0,
-- failures, crashes, reason of its departure, reason and details of its last failure }
local function transfer_row(position, offset, record, batch, move_id)
  return { position, tonumber(offset), record[ARRIVAL], record[GROUP], record[RECEIVES] - record[BEFORE], record[FIRST],
    batch, move_id, record[PRIORITY], record[EXPIRES], record[FAILURES], record[CRASHES], departure_reason(record),
    last_failure(record) }
end

-- Append the messages whose positions are in a range to an answer, in that order, `wanted` at most.
local function add_transfers(answer, first, last, wanted)
  local moving = redis.call('ZRANGEBYSCORE', K.moving, first, last, 'WITHSCORES', 'LIMIT', 0, wanted)
  for index = 1, #moving, 2 do
    local offset, record, batch, move_id = unpack(cmsgpack.unpack(moving[index]))
    answer[#answer + 1] = transfer_row(tonumber(moving[index + 1]), offset, record, batch, move_id)
  end
  return answer
end
