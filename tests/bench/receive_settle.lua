-- Receive ten messages, then acknowledge them; with BODY_FILES, then send a batch.
-- wrk … -- QUEUE_PATH [BODY_FILES COUNT]
-- A %d in BODY_FILES is 0, 1 … below COUNT; they are sent in turn. All connections share what was
-- received: whichever is free next settles it.
require 'report'

delivered, empty, refused = 0, 0, 0

local receive, settle_path, headers
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
  headers = with_given({ ['Content-Type'] = 'application/json', ['Host'] = wrk.headers['Host'] })
  receive = wrk.format('POST', args[1] .. '/receive', headers, '{"messages_max":10}')
  settle_path = args[1] .. '/settle'
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

local function settle_of(body)
  local verdicts = {}
  for handle in string.gmatch(body, '"receipt_handle":"([^"]+)"') do
    verdicts[#verdicts + 1] = '{"action":"ack","receipt_handle":"' .. handle .. '"}'
  end
  delivered = delivered + #verdicts
  return wrk.format('POST', settle_path, headers,
    '{"settlements":[' .. table.concat(verdicts, ',') .. ']}')
end

function response(status, _, body)
  if string.find(body, '"receipt_handle"', 1, true) then
    settles[#settles + 1] = settle_of(body)
  elseif body == '{"messages":[]}' then
    empty = empty + 1
  elseif string.find(body, '"error"', 1, true) then
    refused = refused + 1
  end
end
