-- The paths of a file in turn, each of a GET.
-- wrk … -- ACCEPT PATHS_FILE
require 'report'

local requests, turn = {}, 0

function init(args)
  local headers = with_given({ ['Accept'] = args[1], ['Host'] = wrk.headers['Host'] })
  for path in io.lines(args[2]) do
    requests[#requests + 1] = wrk.format('GET', path, headers)
  end
end

function request()
  turn = turn % #requests + 1
  return requests[turn]
end
