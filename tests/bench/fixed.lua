-- The same request again and again, or a few in turn.
-- wrk … -- METHOD CONTENT_TYPE ACCEPT BODY_FILE PATH COUNT STEP [X_AMZ_TARGET]
-- A %d in PATH becomes 0, STEP, 2 × STEP …, COUNT of them in turn. An empty BODY_FILE is '-'.
require 'report'

local requests, turn = {}, 0

local function contents(file)
  if file == '-' then
    return nil
  end
  local open = assert(io.open(file, 'rb'))
  local body = open:read('*a')
  open:close()
  return body
end

function init(args)
  local headers = { ['Content-Type'] = args[2], ['Accept'] = args[3], ['Host'] = wrk.headers['Host'] }
  headers['X-Amz-Target'] = args[8]
  with_given(headers)
  local body = contents(args[4])
  for number = 1, tonumber(args[6]) do
    local path = string.gsub(args[5], '%%d', string.format('%d', (number - 1) * tonumber(args[7])))
    requests[number] = wrk.format(args[1], path, headers, body)
  end
end

function request()
  turn = turn % #requests + 1
  return requests[turn]
end
