-- Producers whose sequences only rise: what is not above the last one that a log took of a producer is a duplicate.
-- A log forgets none of them unless it is told to; what a forgotten one still brings is refused.
--   rising        hash  producer id -> its last sequence
--   rising_over, rising_over_old  hash  ids of producers that were forgotten (lib/two_generations.lua)
-- A part's claims are { producer id, its first sequence in the part, its last }, one for each producer in it.
local ABOVE, BELOW, ACROSS, OVER, TOO_MANY = 0, 1, 2, 3, 4
local risen, newcomers = {}, 0  -- what the parts of this call did

local function last_risen(rising, id)
  return risen[id] or tonumber(redis.call('HGET', rising, id) or '-1')
end

-- How a part stands to what the log took: ABOVE all of it, BELOW, so that all of it was taken, or ACROSS, with the
-- last sequence of each of its producers.
local function judge_claims(rising, over, over_old, claims, producers_max)
  local lasts, above, below, unknown = {}, 0, 0, 0
  for nth, claim in ipairs(claims) do
    local last = last_risen(rising, claim[1])
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

local function rise(rising, claims)
  for _, claim in ipairs(claims) do
    if last_risen(rising, claim[1]) < 0 then
      newcomers = newcomers + 1
    end
    risen[claim[1]] = claim[3]
  end
end

local function write_risen(rising)
  for id, last in pairs(risen) do
    redis.call('HSET', rising, id, word(last))
  end
end
