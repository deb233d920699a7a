-- Append the parts of one flush to a log. Each part is checked and answered for itself; those that pass
-- become one entry.
-- KEYS     1 log  2 meta  3 prod  4 prod_old  5 idem  6 idem_old  7 keys  8 rising  9 rising_over
--          10 rising_over_old  11 dedup  12 dedup_old
-- ARGV     1 now_ms or empty  2 store epoch  3 producer idle ms  4 producers at most
--          5 idempotency window ms  6 keys at most  7 monotonic producers at most  8 deduplication window ms
--          then three for each part: a batch v1, the number of its records, and its condition: empty, or
--          MessagePack { producer id, epoch, sequence, expected offset, fence, idempotency key, fingerprint,
--          inherited epoch, inherited last sequence, { partition key: number of its last record }, claims of
--          monotonic producers, { { deduplication key, bytes of its batch } for each record } } with '' or -1 for what is absent,
--          and the last three left away; inherited epoch: what
--          closed parents know of the producer, -1 if nothing, -2 if they must be asked; the keys, and so a
--          condition, always where the stream has a key index; claims: see lib/writer_watermarks.lua, and false for no keys;
--          deduplication keys: their part has a batch v1 for each record, one behind the other, and false for keys and claims
-- Returns  { OK, now_ms, offsets left below the ceiling, { verdict, fact } for each part }, or what
--          lib/status.lua says; the fact of a part with another token is the log's token; of one with deduplication keys
--          { DEDUPLICATED, { offset, or -1 - offset for a duplicate, ... } } if it is accepted, and { CLOSED, children, the same with 0
--          for a new record }
-- Checks   store epoch, producer epoch and duplicate, closed, full of what is not archived, fence, sequence,
--          expected offset; of claims: store epoch, over and duplicate, closed, full, fence, sequence, number of producers;
--          of deduplication keys: store epoch, idempotency key, all are duplicates, closed, full, fence
-- Keeps    S1 one value for an offset; S2 offsets rise; S4 a repeated produce adds nothing; T1, T5 a route adds
--          one copy; T2, T7 a message has the routes that took it, from its acceptance on; T8 a deduplication key adds one
--          record in its window, and a part that was refused leaves none
-- @include numbers
-- @include time
-- @include notify
-- @include status
-- @include writable
-- @include two_generations
-- @include writer_watermarks
local APPENDED, DUPLICATE, FENCED_PRODUCER, CLOSED, FENCED, OUT_OF_ORDER, NOT_EXPECTED, KEY_REUSED, ASK_PARENTS,
  FULL = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9
local STRADDLES, PRODUCER_OVER, PRODUCERS_FULL, DEDUPLICATED = 10, 11, 12, 13
local PART_ARGS, FIRST_PART = 3, 9
local BATCHES_KEPT = 5
local ASK = -2
local NO_CAP = 1e9  -- deduplication has a window, and no number of keys that would let a duplicate in early

local log, meta, prod, prod_old, idem, idem_old = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local index_of_keys, rising, over, over_old = KEYS[7], KEYS[8], KEYS[9], KEYS[10]
local dedup, dedup_old = KEYS[11], KEYS[12]
local held = redis.call('HMGET', meta, 'next', 'ceiling', 'store_epoch', 'deleted', 'last_ms', 'closed',
  'fence', 'bytes', 'indexed', 'full_at')
local wanted = 0
for index = FIRST_PART, #ARGV, PART_ARGS do
  wanted = wanted + tonumber(ARGV[index + 1])
end
local refused = refusal(held[1], held[2], held[3], held[4], ARGV[2], wanted)
if refused then
  return refused
end
local now = now_at(ARGV[1], held[5])
local first_offset = tonumber(held[1])
local next_offset = first_offset
local producers, keys, dedup_keys = {}, {}, {}
local newest, is_indexed = {}, false
local entry, size = {}, 0

-- A producer's state is { epoch, last sequence, touched ms, { first sequence, records, offset }... },
-- newest batch last; parts of this flush see what the parts before them did.
local function state_of(id)
  local packed = producers[id] or recall(prod, prod_old, id)
  return packed and cmsgpack.unpack(packed)
end

local function earlier_batch(state, sequence, count)
  for index = 4, #state do
    local batch = state[index]
    if batch[1] == sequence and batch[2] == count then
      return batch[3]
    end
  end
end

local function note_batch(id, epoch, sequence, count, offset)
  local state = state_of(id)
  if not state or state[1] < epoch then
    state = { epoch, 0, 0 }
  end
  state[2], state[3] = sequence + count - 1, now
  table.insert(state, { sequence, count, offset })
  if #state > 3 + BATCHES_KEPT then
    table.remove(state, 4)
  end
  producers[id] = cmsgpack.pack(state)
end

-- Remember what a part's idempotency key is answered with from now on: its first offset, or all of them.
local function note_key(condition, count, offset, offsets)
  if condition[6] ~= '' then
    local known = { word(offset), word(count), condition[7], word(now), offsets }
    keys[condition[6]] = table.concat(known, ' ')
  end
end

-- Offsets that were remembered with an idempotency key, now all of duplicates.
local function duplicates_at(remembered)
  local signed = {}
  for offset in string.gmatch(remembered, '%d+') do
    table.insert(signed, -1 - tonumber(offset))
  end
  return signed
end

local function key_verdict(key, fingerprint, count)
  local known = keys[key] or recall(idem, idem_old, key)
  if known then
    local offset, records, print, at, offsets = string.match(known, '^(%d+) (%d+) (%S*) (%d+) ?(%S*)$')
    if now - tonumber(at) < tonumber(ARGV[5]) then
      if print ~= fingerprint or tonumber(records) ~= count then
        return { KEY_REUSED, 0 }
      elseif offsets ~= '' then
        return { DEDUPLICATED, duplicates_at(offsets) }
      end
      return { DUPLICATE, tonumber(offset) }
    end
  end
end

-- The offset of the record that was added under a deduplication key within the window, if there is one.
local function offset_of_key(key)
  local known = dedup_keys[key] or recall(dedup, dedup_old, key)
  if known then
    local offset, at = string.match(known, '^(%d+) (%d+)$')
    return now - tonumber(at) < tonumber(ARGV[8]) and tonumber(offset) or nil
  end
end

-- The answer to a part with deduplication keys.
local function deduplicated(condition, signed)
  local offsets = {}
  for nth, offset in ipairs(signed) do
    offsets[nth] = word(math.max(offset, -1 - offset))
  end
  note_key(condition, #offsets, 0, table.concat(offsets, ','))
  return { DEDUPLICATED, signed }
end

-- For each record -1 - offset of the earlier one, or 0; and whether there is one for all.
local function known_offsets(records)
  local signed, all = {}, true
  for nth, record in ipairs(records) do
    local offset = offset_of_key(record[1])
    signed[nth] = offset and -1 - offset or 0
    all = all and offset
  end
  return signed, all
end

-- Add the records of a part whose deduplication keys are new, also within the part.
local function add_new(condition, batches)
  local signed, first = {}, 1
  for nth, record in ipairs(condition[12]) do
    local key, bytes = record[1], record[2]
    local offset = offset_of_key(key)
    if offset then
      signed[nth] = -1 - offset
    else
      signed[nth] = next_offset
      dedup_keys[key] = word(next_offset) .. ' ' .. word(now)
      table.insert(entry, 'd')
      table.insert(entry, string.sub(batches, first, first + bytes - 1))
      size = size + bytes
      next_offset = next_offset + 1
    end
    first = first + bytes
  end
  return deduplicated(condition, signed)
end

local function verdict_of_claims(claims, fence)
  local stands, lasts = judge_claims(rising, over, over_old, claims, tonumber(ARGV[7]))
  if stands == OVER then
    return { PRODUCER_OVER, 0 }
  elseif stands == BELOW then
    return { DUPLICATE, 0 }
  elseif held[6] then
    return { CLOSED, held[6] }
  elseif held[10] and tonumber(held[8]) >= tonumber(held[10]) then
    return { FULL, 0 }
  elseif (held[7] or '') ~= fence then
    return { FENCED, held[7] or '' }
  elseif stands == ACROSS then
    return { STRADDLES, lasts }
  elseif stands == TOO_MANY then
    return { PRODUCERS_FULL, 0 }
  end
  return { APPENDED, next_offset }
end

local function verdict_of(count, condition)
  if condition[11] then
    return verdict_of_claims(condition[11], condition[5])
  end
  local id, epoch, sequence, expected, fence, key, fingerprint, inherited_epoch, inherited_last = unpack(condition)
  local state
  if id ~= '' then
    state = state_of(id)
    if not state and inherited_epoch == ASK then
      return { ASK_PARENTS, 0 }
    elseif not state and inherited_epoch >= 0 then
      state = { inherited_epoch, inherited_last, now }
    end
    if state and epoch < state[1] then
      return { FENCED_PRODUCER, state[1] }
    end
    if state and epoch == state[1] then
      local offset = earlier_batch(state, sequence, count)
      if offset then
        return { DUPLICATE, offset }
      elseif sequence <= state[2] then
        return { DUPLICATE, -1 }
      end
    end
  end
  if key ~= '' then
    local known = key_verdict(key, fingerprint, count)
    if known then
      return known
    end
  end
  local signed, all_known
  if condition[12] then
    signed, all_known = known_offsets(condition[12])
    if all_known then
      return deduplicated(condition, signed)
    end
  end
  if held[6] then
    return { CLOSED, held[6], signed }
  end
  if held[10] and tonumber(held[8]) >= tonumber(held[10]) then
    return { FULL, 0 }
  end
  if (held[7] or '') ~= fence then
    return { FENCED, held[7] or '' }
  end
  if id ~= '' then
    local follows = (state and state[1] == epoch) and state[2] + 1 or 0
    if sequence ~= follows then
      return { OUT_OF_ORDER, follows }
    end
  end
  if expected >= 0 and expected ~= next_offset then
    return { NOT_EXPECTED, next_offset }
  end
  return { APPENDED, next_offset }
end

local UNCONDITIONAL = { '', 0, 0, -1, '', '', '', -1, -1 }
local answer = { OK, now, 0 }
for index = FIRST_PART, #ARGV, PART_ARGS do
  local batch, count = ARGV[index], tonumber(ARGV[index + 1])
  local condition = ARGV[index + 2] == '' and UNCONDITIONAL or cmsgpack.unpack(ARGV[index + 2])
  local verdict = verdict_of(count, condition)
  if verdict[1] == APPENDED and condition[12] then
    verdict = add_new(condition, batch)
  elseif verdict[1] == APPENDED then
    if condition[1] ~= '' then
      note_batch(condition[1], condition[2], condition[3], count, next_offset)
    end
    note_key(condition, count, next_offset)
    if condition[11] then
      raise_watermarks(rising, condition[11])
    end
    if condition[10] then
      is_indexed = true
      for key, nth in pairs(condition[10]) do
        newest[key] = next_offset + nth
      end
    end
    table.insert(entry, 'd')
    table.insert(entry, batch)
    size = size + #batch
    next_offset = next_offset + count
  end
  table.insert(answer, verdict)
end

-- An index that missed an append, by a process that did not know of it, would tell old records: it begins
-- anew with the next one that knows. `indexed` is the offset from which on it knows all.
local function index_keys()
  if (held[9] ~= false) ~= is_indexed then
    redis.call('UNLINK', index_of_keys)
    if is_indexed then
      redis.call('HSET', meta, 'indexed', word(first_offset))
    else
      redis.call('HDEL', meta, 'indexed')
    end
  end
  local pairs_of = {}
  for key, offset in pairs(newest) do
    table.insert(pairs_of, key)
    table.insert(pairs_of, word(offset))
  end
  if #pairs_of > 0 then
    redis.call('HSET', index_of_keys, unpack(pairs_of))
  end
end

local added = next_offset - first_offset
if added > 0 then
  local bytes = tonumber(held[8])
  if added > 1 then
    table.insert(entry, 'n')
    table.insert(entry, word(added))
  end
  redis.call('XADD', log, word(first_offset) .. '-' .. word(now), 'c', word(bytes), unpack(entry))
  redis.call('HSET', meta, 'next', word(next_offset), 'last_ms', word(now), 'bytes', word(bytes + size))
  for id, state in pairs(producers) do
    remember(meta, prod, prod_old, 'prod_since', now, tonumber(ARGV[3]), tonumber(ARGV[4]), id, state)
  end
  local ids = {}
  for key, value in pairs(dedup_keys) do
    ids[#ids + 1], ids[#ids + 2] = key, value
  end
  remember_many(meta, dedup, dedup_old, 'dedup_since', now, tonumber(ARGV[8]), NO_CAP, ids)
  write_watermarks(rising)
  if is_indexed or held[9] then
    index_keys()
  end
  wake(meta)
end
for key, value in pairs(keys) do
  remember(meta, idem, idem_old, 'idem_since', now, tonumber(ARGV[5]), tonumber(ARGV[6]), key, value)
end
answer[3] = tonumber(held[2]) - next_offset
return answer
