-- What the scripts that settle share. They are lean, since they run on the cores that the server has.

-- The receipt handles of an answer. `opening` stands before each, up to its quotation mark.
function handles_in(body, opening)
  local handles, from = {}, 1
  while true do
    local _, last = string.find(body, opening, from, true)
    if not last then
      return handles
    end
    from = string.find(body, '"', last + 1, true)
    handles[#handles + 1] = string.sub(body, last + 1, from - 1)
  end
end

-- Makes requests that differ in their bodies alone.
function posting(path, headers)
  local head = string.gsub(wrk.format('POST', path, headers, ''), 'Content%-Length: 0\r\n', '')
  head = string.sub(head, 1, -3) .. 'Content-Length: '  -- without the empty line at its end
  return function(body)
    return head .. #body .. '\r\n\r\n' .. body
  end
end
