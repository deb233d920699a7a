package millstream;

import com.fasterxml.jackson.databind.JsonNode;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.HashMap;
import java.util.Map;

/**
 * A received message, leased to its receiver until {@code visibleAt}. Settle it once.
 *
 * <p>Bytes of a JSON body are compact JSON, whatever its white space was.
 */
public final class Message {
  private final Queue queue;
  private final JsonNode item;
  private volatile boolean isSettled;

  Message(Queue queue, JsonNode item) {
    this.queue = queue;
    this.item = item;
  }

  /** The id, the same in every queue. */
  public String id() {
    return item.path("id").asText();
  }

  /** The body as bytes. */
  public byte[] body() {
    return Json.bodyOf(item, "body");
  }

  /** The body as text. */
  public String text() {
    return new String(body(), StandardCharsets.UTF_8);
  }

  /** The body, decoded from JSON. */
  public <T> T json(Class<T> type) {
    return Json.read(body(), type);
  }

  /** The content type; empty if none was set. */
  public String contentType() {
    return item.path("content_type").asText("");
  }

  /** The text headers. */
  public Map<String, String> headers() {
    return textsOf(item.path("headers"));
  }

  static Map<String, String> textsOf(JsonNode headers) {
    Map<String, String> texts = new HashMap<>();
    headers.fields().forEachRemaining(header -> texts.put(header.getKey(), header.getValue().asText()));
    return texts;
  }

  /** The message group; empty if it has none. */
  public String group() {
    return item.path("group").asText("");
  }

  /** The number of deliveries, including this one. */
  public int receiveCount() {
    return item.path("receive_count").asInt();
  }

  /** The number of deliveries that were negatively acknowledged. */
  public int failures() {
    return item.path("failures").asInt();
  }

  /** When the message was sent. */
  public Instant sentAt() {
    return Instant.parse(item.path("sent_at").asText());
  }

  /** When it is redelivered, unless it is settled or extended before. */
  public Instant visibleAt() {
    return Instant.parse(item.path("visible_at").asText());
  }

  /** The receipt handle of this delivery. */
  public String receiptHandle() {
    return item.path("receipt_handle").asText();
  }

  /** Acknowledge the message, which deletes it. */
  public void ack() {
    settle(Settlement.of(this, "ack"));
  }

  /** Say that the attempt failed: the message is redelivered after the queue's backoff, or becomes a dead letter. */
  public void nack(String reason) {
    settle(Settlement.of(this, "nack").reason(reason, ""));
  }

  /** Say that the attempt failed, with a delay instead of the queue's backoff. */
  public void nack(Duration delay, String reason) {
    settle(Settlement.of(this, "nack").delay(delay).reason(reason, ""));
  }

  /** Say that the message can never succeed: it becomes a dead letter with the reason. */
  public void reject(String reason) {
    settle(Settlement.of(this, "reject").reason(reason, ""));
  }

  /** Return the message without counting an attempt; it is ready immediately. */
  public void release() {
    settle(Settlement.of(this, "release"));
  }

  /** Keep the message hidden for a time from now. */
  public void extend(Duration timeout) {
    settle(Settlement.extension(this, timeout));
  }

  boolean isSettled() {
    return isSettled;
  }

  void settle(Settlement settlement) {
    queue.settler().settle(settlement);
    isSettled |= !settlement.action().equals("extend");
  }
}
