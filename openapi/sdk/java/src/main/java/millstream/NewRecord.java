package millstream;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.Map;

/**
 * A record to append.
 *
 * @param data bytes, text, or any value with a JSON form
 * @param key records with the same key stay in one shard, in order
 * @param headers text headers
 * @param contentType content type of the data; empty for none
 * @param eventTime null for none
 */
public record NewRecord(
    Object data, String key, Map<String, String> headers, String contentType, Instant eventTime) {
  /** Return a record without a key. */
  public static NewRecord of(Object data) {
    return data instanceof NewRecord record ? record : of("", data);
  }

  /** Return a record with a key. */
  public static NewRecord of(String key, Object data) {
    return new NewRecord(data, key, Map.of(), "", null);
  }

  /** Return a copy with headers. */
  public NewRecord withHeaders(Map<String, String> value) {
    return new NewRecord(data, key, value, contentType, eventTime);
  }

  /** Return a copy with an event time. */
  public NewRecord withEventTime(Instant value) {
    return new NewRecord(data, key, headers, contentType, value);
  }

  /** Write the record into an item; return the size of its data. */
  int encode(ObjectNode item) {
    if (!key.isEmpty()) item.put("key", key);
    if (!headers.isEmpty()) item.set("headers", Json.MAPPER.valueToTree(headers));
    if (eventTime != null) item.put("event_time", eventTime.truncatedTo(ChronoUnit.MILLIS).toString());
    return Json.putBody(item, "data", data, contentType);
  }
}
