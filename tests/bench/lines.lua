-- The lines of a file in turn, each the body of a call to an AWS service.
-- wrk … -- CONTENT_TYPE X_AMZ_TARGET BODIES_FILE
require 'report'

local requests, turn = {}, 0

function init(args)
  local headers = with_given(
    { ['Content-Type'] = args[1], ['X-Amz-Target'] = args[2], ['Host'] = wrk.headers['Host'] })
  for body in io.lines(args[3]) do
    requests[#requests + 1] = wrk.format('POST', '/', headers, body)
  end
end

function request()
  turn = turn % #requests + 1
  return requests[turn]
end
