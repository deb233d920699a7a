-- High-water marks of monotonic producers: a sequence at or below a producer's last accepted one is a duplicate.
-- A log keeps a producer's mark until the producer is retired; late records of a retired one are rejected.
--   rising        hash  producer id -> its last sequence
--   rising_over, rising_over_old  hash  ids of retired producers (lib/two_generations.lua)
-- A part's claims are { producer id, its first sequence in the part, its last }, one for each producer in it.
local ABOVE, BELOW, ACROSS, OVER, TOO_MANY = 0, 1, 2, 3, 4
local raised, newcomers = {}, 0  -- by the parts of this call

local function watermark_of(rising, id)
  return raised[id] or tonumber(redis.call('HGET', rising, id) or '-1')
end

-- Compare a part with the high-water marks: ABOVE all of them, BELOW (all of it is a duplicate), or ACROSS, with the
-- last sequence of each of its producers.
local function judge_claims(rising, over, over_old, claims, producers_max)
  local lasts, above, below, unknown = {}, 0, 0, 0
  for nth, claim in ipairs(claims) do
    local last = watermark_of(rising, claim[1])
    lasts[nth] = last
    if last < 0 then
      if recall(over, over_old, claim[1]) then
        return OVER
      end
      unknown = unknown + 1
    end
    if claim[3] <= last then
      below = below + 1
    elseif claim[2] > last then
      above = above + 1
    end
  end
  if below == #claims then
    return BELOW
  elseif above < #claims then
    return ACROSS, lasts
  elseif unknown > 0 and redis.call('HLEN', rising) + newcomers + unknown > producers_max then
    return TOO_MANY
  end
  return ABOVE
end

local function raise_watermarks(rising, claims)
  for _, claim in ipairs(claims) do
    if watermark_of(rising, claim[1]) < 0 then
      newcomers = newcomers + 1
    end
    raised[claim[1]] = claim[3]
  end
end

local function write_watermarks(rising)
  for id, last in pairs(raised) do
    redis.call('HSET', rising, id, word(last))
  end
end
