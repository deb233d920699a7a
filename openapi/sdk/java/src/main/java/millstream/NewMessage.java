package millstream;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;

/** A message to send. Its methods return copies: {@code NewMessage.of(order).group("ann").priority(3)}. */
public final class NewMessage {
  final Object body;
  final String contentType;
  final String idempotencyKey;
  private final Map<String, Object> fields;

  private NewMessage(Object body, String contentType, String idempotencyKey, Map<String, Object> fields) {
    this.body = body;
    this.contentType = contentType;
    this.idempotencyKey = idempotencyKey;
    this.fields = fields;
  }

  /** Return a message. {@code body}: bytes, text, or any value with a JSON form. */
  public static NewMessage of(Object body) {
    return body instanceof NewMessage message ? message : new NewMessage(body, "", "", Map.of());
  }

  /** Set text headers. */
  public NewMessage headers(Map<String, String> headers) {
    return with("headers", headers);
  }

  /** Set the content type of the body. */
  public NewMessage contentType(String value) {
    return new NewMessage(body, value, idempotencyKey, fields);
  }

  /** Set the message group of a FIFO queue. */
  public NewMessage group(String value) {
    return with("group", value);
  }

  /** Set the deduplication id of a FIFO queue. */
  public NewMessage dedupId(String value) {
    return with("dedup_id", value);
  }

  /** Set the time until the message is ready. */
  public NewMessage delay(Duration value) {
    return with("delay_seconds", seconds(value));
  }

  /** Set how long the message lives from when it is due. */
  public NewMessage ttl(Duration value) {
    return with("ttl_seconds", seconds(value));
  }

  /** Set the priority, 0 to 9. */
  public NewMessage priority(int value) {
    return with("priority", value);
  }

  /** Set the key that makes sends of several processes, or of one that restarted, one send. */
  public NewMessage idempotencyKey(String value) {
    return new NewMessage(body, contentType, value, fields);
  }

  private NewMessage with(String name, Object value) {
    Map<String, Object> copy = new HashMap<>(fields);
    copy.put(name, value);
    return new NewMessage(body, contentType, idempotencyKey, copy);
  }

  static double seconds(Duration duration) {
    return duration.toMillis() / 1_000.0;
  }

  /** Write the message into an item; return the size of its body. */
  int encode(ObjectNode item) {
    fields.forEach((name, value) -> item.set(name, Json.MAPPER.valueToTree(value)));
    return Json.putBody(item, "body", body, contentType);
  }
}
