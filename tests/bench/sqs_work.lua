-- ReceiveMessage of ten, then DeleteMessageBatch of them.
-- wrk … -- QUEUE_URL
-- All connections share what was received: whichever is free next deletes it.
require 'report'
require 'handles'

delivered, empty, refused = 0, 0, 0

local receive, post_delete, opening
local deletes = {}

local function headers_of(operation)
  return with_given({
    ['Content-Type'] = 'application/x-amz-json-1.0',
    ['X-Amz-Target'] = 'AmazonSQS.' .. operation,
    ['Host'] = wrk.headers['Host'],
  })
end

function init(args)
  local url = '{"QueueUrl":"' .. args[1] .. '",'
  receive = wrk.format('POST', '/', headers_of('ReceiveMessage'), url .. '"MaxNumberOfMessages":10}')
  post_delete, opening = posting('/', headers_of('DeleteMessageBatch')), url .. '"Entries":['
end

function request()
  return table.remove(deletes) or receive
end

local function delete_of(handles)
  delivered = delivered + #handles
  for number, handle in ipairs(handles) do
    handles[number] = '{"Id":"' .. number .. '","ReceiptHandle":"' .. handle .. '"}'
  end
  return post_delete(opening .. table.concat(handles, ',') .. ']}')
end

function response(_, _, body)
  local handles = handles_in(body, '"ReceiptHandle":"')
  if #handles > 0 then
    deletes[#deletes + 1] = delete_of(handles)
  elseif body == '{}' then
    empty = empty + 1
  elseif string.find(body, '"Failed"', 1, true) then
    refused = refused + 1
  end
end
