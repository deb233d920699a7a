-- What every script of the bench says at its end: one line of JSON behind the word RESULT.
-- `delivered`, `empty` and `refused` are counted by the scripts that read their answers.
local thread

-- `headers` with those that wrk was given with -H.
function with_given(headers)
  for name, value in pairs(wrk.headers) do
    headers[name] = headers[name] or value
  end
  return headers
end

function setup(one)  -- -t1: there is one thread, whose globals are not ours
  thread = one
end

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    'RESULT {"calls":%d,"seconds":%.6f,"bytes":%.0f,"bad_status":%d,"broken":%d,"timed_out":%d,' ..
    '"delivered":%d,"empty":%d,"refused":%d,"p50_ms":%.3f,"p99_ms":%.3f}\n',
    summary.requests, summary.duration / 1e6, summary.bytes, errors.status,
    errors.connect + errors.read + errors.write, errors.timeout,
    thread:get('delivered') or 0, thread:get('empty') or 0, thread:get('refused') or 0,
    latency:percentile(50) / 1e3, latency:percentile(99) / 1e3))
end
