-- Receive ten messages, then acknowledge them; with BODY_FILES, then send a batch.
-- wrk … -- QUEUE_PATH [BODY_FILES COUNT]
-- A %d in BODY_FILES is 0, 1 … below COUNT; they are sent in turn. All connections share what was
-- received: whichever is free next settles it.
require 'report'
require 'handles'

delivered, empty, refused = 0, 0, 0

local receive, post_settle
local sends, turn, sends_owed = {}, 0, 0
local settles = {}

local function send_of(path, file)
  local packed = { ['Content-Type'] = 'application/msgpack', ['Host'] = wrk.headers['Host'] }
  local open = assert(io.open(file, 'rb'))
  local body = open:read('*a')
  open:close()
  return wrk.format('POST', path .. '/messages', packed, body)
end

function init(args)
  local headers = with_given({ ['Content-Type'] = 'application/json', ['Host'] = wrk.headers['Host'] })
  receive = wrk.format('POST', args[1] .. '/receive', headers, '{"messages_max":10}')
  post_settle = posting(args[1] .. '/settle', headers)
  for number = 1, tonumber(args[3] or 0) do
    sends[number] = send_of(args[1], (string.gsub(args[2], '%%d', string.format('%d', number - 1))))
  end
end

function request()
  local settle = table.remove(settles)
  if settle then
    sends_owed = sends_owed + 1
    return settle
  elseif #sends > 0 and sends_owed > 0 then
    sends_owed = sends_owed - 1
    turn = turn % #sends + 1
    return sends[turn]
  end
  return receive
end

local VERDICT = '{"action":"ack","receipt_handle":"'

local function settle_of(handles)
  delivered = delivered + #handles
  return post_settle('{"settlements":[' .. VERDICT .. table.concat(handles, '"},' .. VERDICT) .. '"}]}')
end

function response(_, _, body)
  local handles = handles_in(body, '"receipt_handle":"')
  if #handles > 0 then
    settles[#settles + 1] = settle_of(handles)
  elseif body == '{"messages":[]}' then
    empty = empty + 1
  elseif string.find(body, '"error"', 1, true) then
    refused = refused + 1
  end
end
