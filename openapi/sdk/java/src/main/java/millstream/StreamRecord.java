package millstream;

import com.fasterxml.jackson.databind.JsonNode;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * A record of a stream.
 *
 * @param eventTime null if the record has none
 */
public record StreamRecord(
    int shard,
    long offset,
    String key,
    byte[] data,
    String contentType,
    Map<String, String> headers,
    Instant arrivalTime,
    Instant eventTime) {

  static List<StreamRecord> allOf(JsonNode items) {
    List<StreamRecord> records = new ArrayList<>();
    items.forEach(item -> records.add(of(item)));
    return records;
  }

  private static StreamRecord of(JsonNode item) {
    return new StreamRecord(
        item.path("shard").asInt(),
        item.path("offset").asLong(),
        item.path("key").asText(""),
        Json.bodyOf(item, "data"),
        item.path("content_type").asText(""),
        Message.textsOf(item.path("headers")),
        Instant.parse(item.path("arrival_time").asText()),
        item.has("event_time") ? Instant.parse(item.path("event_time").asText()) : null);
  }

  /** The data as text. */
  public String text() {
    return new String(data, StandardCharsets.UTF_8);
  }

  /** The data, decoded from JSON. */
  public <T> T json(Class<T> type) {
    return Json.read(data, type);
  }
}
