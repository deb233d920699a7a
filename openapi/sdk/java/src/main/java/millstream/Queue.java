package millstream;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import millstream.core.model.DeadLetterOut;
import millstream.core.model.QueueStatsOut;

/** A queue, whether it exists or not. */
public final class Queue {
  private final Millstream client;
  private final String name;
  private final Settler settler;

  Queue(Millstream client, String name) {
    this.client = client;
    this.name = name;
    this.settler = new Settler(this);
  }

  /** The name of the queue. */
  public String name() {
    return name;
  }

  Millstream client() {
    return client;
  }

  Settler settler() {
    return settler;
  }

  private List<String> path(String... words) {
    List<String> path = new ArrayList<>(List.of("queues", name));
    path.addAll(List.of(words));
    return path;
  }

  /**
   * Create the queue. If it exists with these settings, it is returned with {@code created} false. Settings have the
   * names of the REST API, such as {@code attempts_max}; those that you leave out are not compared.
   *
   * @throws MillstreamException.AlreadyExists if settings differ
   */
  public Stored create(Map<String, ?> settings) {
    return client.create(path(), settings);
  }

  /** Create the queue with the default settings. */
  public Stored create() {
    return create(Map.of());
  }

  /** Create the queue, or replace its settings. */
  public Stored apply(Map<String, ?> settings) {
    return client.apply(path(), settings);
  }

  /** Return exact message counts by state. */
  public QueueStatsOut stats() {
    return Json.MAPPER.convertValue(client.get(path("stats"), Map.of()), QueueStatsOut.class);
  }

  /** Delete the queue and its messages. */
  public void delete() {
    client.send("DELETE", path(), Map.of(), Map.of(), null);
  }

  // ── Sending ──

  /** The id and offset of a sent message. {@code duplicate}: it had been sent before, and nothing was added. */
  public record Sent(String id, long offset, boolean duplicate) {}

  /** Send one message: bytes, text, any value with a JSON form, or a {@link NewMessage}. */
  public Sent send(Object body) {
    NewMessage message = NewMessage.of(body);
    ObjectNode item = Json.MAPPER.createObjectNode();
    message.encode(item);
    return send(Json.MAPPER.createArrayNode().add(item), message.idempotencyKey).get(0);
  }

  /** Send messages in as few calls as possible, each all or nothing. Their idempotency keys are not used. */
  public List<Sent> sendMany(List<?> bodies) {
    List<Sent> sent = new ArrayList<>();
    for (ArrayNode batch : Batches.of(bodies, (body, item) -> NewMessage.of(body).encode(item))) {
      sent.addAll(send(batch, ""));
    }
    return sent;
  }

  private List<Sent> send(ArrayNode messages, String key) {
    Map<String, String> headers = Map.of(Effects.IDEMPOTENCY_KEY, key.isEmpty() ? Effects.randomKey() : key);
    JsonNode answer = client.send("POST", path("messages"), Map.of(), headers, Map.of("messages", messages));
    List<Sent> sent = new ArrayList<>();
    for (JsonNode item : answer.path("messages")) {
      sent.add(
          new Sent(item.path("id").asText(), item.path("offset").asLong(), item.path("duplicate").asBoolean()));
    }
    return sent;
  }

  // ── Receiving ──

  /** Receive up to a number of messages, waiting for the first; an empty list means that none arrived. */
  public List<Message> receive(int messagesMax, Duration wait) {
    return receive(messagesMax, wait, null);
  }

  /** Receive messages that stay hidden for a time; null: the queue's default. */
  public List<Message> receive(int messagesMax, Duration wait, Duration visibilityTimeout) {
    Map<String, Object> body = new HashMap<>();
    body.put("messages_max", messagesMax);
    body.put("attempt_id", Effects.randomKey());
    body.put("wait_seconds", NewMessage.seconds(wait));
    if (visibilityTimeout != null) body.put("visibility_timeout_seconds", NewMessage.seconds(visibilityTimeout));
    List<Message> messages = new ArrayList<>();
    for (JsonNode item : client.post(path("receive"), body).path("messages")) {
      messages.add(new Message(this, item));
    }
    return messages;
  }

  /** Return a worker that passes messages to the handler. */
  public Worker worker(Worker.Handler handler) {
    return new Worker(this, handler);
  }

  /** Settle deliveries in one call; return the rejection of each, or null. */
  List<MillstreamException.ItemError> settle(List<Settlement> settlements) {
    JsonNode answer = client.post(path("settle"), Map.of("settlements", settlements));
    return errorsOf(answer.path("results"));
  }

  static List<MillstreamException.ItemError> errorsOf(JsonNode results) {
    List<MillstreamException.ItemError> errors = new ArrayList<>();
    for (JsonNode result : results) {
      JsonNode error = result.get("error");
      errors.add(error == null ? null : Json.MAPPER.convertValue(error, MillstreamException.ItemError.class));
    }
    return errors;
  }

  // ── Dead letters ──

  /** List all dead letters, oldest first. */
  public List<DeadLetterOut> deadLetters() {
    List<DeadLetterOut> letters = new ArrayList<>();
    Map<String, String> query = Map.of();
    while (true) {
      JsonNode page = client.get(path("dead-letters"), query);
      for (JsonNode letter : page.path("items")) {
        letters.add(Json.MAPPER.convertValue(letter, DeadLetterOut.class));
      }
      String cursor = page.path("next_cursor").asText("");
      if (cursor.isEmpty() || page.path("next_cursor").isNull()) return letters;
      query = Map.of("cursor", cursor);
    }
  }
}
