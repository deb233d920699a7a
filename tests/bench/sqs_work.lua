-- ReceiveMessage of ten, then DeleteMessageBatch of them.
-- wrk … -- QUEUE_URL
-- All connections share what was received: whichever is free next deletes it.
require 'report'

delivered, empty, refused = 0, 0, 0

local receive, url
local deletes = {}

local function headers_of(operation)
  return with_given({
    ['Content-Type'] = 'application/x-amz-json-1.0',
    ['X-Amz-Target'] = 'AmazonSQS.' .. operation,
    ['Host'] = wrk.headers['Host'],
  })
end

function init(args)
  url = '{"QueueUrl":"' .. args[1] .. '",'
  receive = wrk.format('POST', '/', headers_of('ReceiveMessage'), url .. '"MaxNumberOfMessages":10}')
end

function request()
  return table.remove(deletes) or receive
end

local function delete_of(body)
  local entries = {}
  for handle in string.gmatch(body, '"ReceiptHandle":"([^"]+)"') do
    entries[#entries + 1] = '{"Id":"' .. #entries .. '","ReceiptHandle":"' .. handle .. '"}'
  end
  delivered = delivered + #entries
  return wrk.format('POST', '/', headers_of('DeleteMessageBatch'),
    url .. '"Entries":[' .. table.concat(entries, ',') .. ']}')
end

function response(status, _, body)
  if string.find(body, '"ReceiptHandle"', 1, true) then
    deletes[#deletes + 1] = delete_of(body)
  elseif body == '{}' then
    empty = empty + 1
  elseif string.find(body, '"Failed"', 1, true) then
    refused = refused + 1
  end
end
