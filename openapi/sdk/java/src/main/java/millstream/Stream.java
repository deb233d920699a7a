package millstream;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.function.Consumer;
import millstream.MillstreamException.ItemError;
import millstream.MillstreamException.ItemsRejected;
import millstream.MillstreamException.Problem;

/** A stream, whether it exists or not. */
public final class Stream {
  private static final int WAIT_SECONDS = 20;

  private final Millstream client;
  private final String name;
  private Consumer<Gap> onGap = Gap.WARN;

  Stream(Millstream client, String name) {
    this.client = client;
    this.name = name;
  }

  /** The name of the stream. */
  public String name() {
    return name;
  }

  /** Set what is called when records that retention deleted are skipped. The default logs a warning. */
  public Stream onGap(Consumer<Gap> value) {
    onGap = value;
    return this;
  }

  private List<String> path(String... words) {
    List<String> path = new ArrayList<>(List.of("streams", name));
    path.addAll(List.of(words));
    return path;
  }

  /**
   * Create the stream. If it exists with these settings, it is returned with {@code created} false. Settings that you
   * leave out are not compared.
   *
   * @throws MillstreamException.AlreadyExists if settings differ
   */
  public Stored create(Map<String, ?> settings) {
    return client.create(path(), settings);
  }

  /** Create the stream, or replace its settings. */
  public Stored apply(Map<String, ?> settings) {
    return client.apply(path(), settings);
  }

  /** Delete the stream and its records. */
  public void delete() {
    client.send("DELETE", path(), Map.of(), Map.of(), null);
  }

  // ── Appending ──

  /** The position of a record. {@code duplicate}: it had been appended before, and nothing was added. */
  public record Appended(int shard, long offset, boolean duplicate) {}

  /** Append one record: bytes, text, any value with a JSON form, or a {@link NewRecord}. */
  public Appended append(Object data) {
    return appendMany(List.of(data)).get(0);
  }

  /** Append one record with a key. */
  public Appended append(String key, Object data) {
    return append(NewRecord.of(key, data));
  }

  /**
   * Append records in as few calls as possible. Records that are rejected for now are appended again.
   *
   * @throws ItemsRejected if others are rejected
   */
  public List<Appended> appendMany(List<?> records) {
    List<Appended> appended = new ArrayList<>();
    List<ItemError> errors = new ArrayList<>();
    for (ArrayNode batch : Batches.of(records, (record, item) -> NewRecord.of(record).encode(item))) {
      JsonNode results = append(batch);
      errors.addAll(Queue.errorsOf(results));
      for (JsonNode result : results) {
        boolean isDuplicate = result.path("duplicate").asBoolean();
        appended.add(new Appended(result.path("shard").asInt(-1), result.path("offset").asLong(-1), isDuplicate));
      }
    }
    if (errors.stream().anyMatch(error -> error != null)) throw new ItemsRejected(errors);
    return appended;
  }

  /** Send a batch until no record is rejected for now; its key adds each record once. */
  private JsonNode append(ArrayNode batch) {
    Map<String, String> key = Map.of(Effects.IDEMPOTENCY_KEY, Effects.randomKey());
    Attempts.Reachability service = new Attempts.Reachability();
    service.isEstablished = true;
    Attempts attempts = new Attempts(client.retries(), service, true, false);
    while (true) {
      JsonNode results =
          client.send("POST", path("records"), Map.of(), key, Map.of("records", batch)).path("records");
      boolean isFinal = Queue.errorsOf(results).stream().noneMatch(error -> error != null && error.retryable());
      if (isFinal || !pauseAfterRejection(attempts)) return results;
    }
  }

  private static boolean pauseAfterRejection(Attempts attempts) {
    String detail = "Records were rejected for now";
    try {
      Thread.sleep(attempts.pauseAfter(new MillstreamException(Problem.unanswered(detail, true, false, null))).toMillis());
      return true;
    } catch (MillstreamException isOver) {
      return false;
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
      throw new MillstreamException.Interrupted(error);
    }
  }

  // ── Reading ──

  /** Where a read begins. */
  public record Position(String parameter, String value) {
    /** The oldest record. */
    public static final Position EARLIEST = new Position("from", "earliest");

    /** After the newest record. */
    public static final Position LATEST = new Position("from", "latest");

    /** The first record that arrived at or after a time. */
    public static Position since(Instant time) {
      return new Position("time", time.truncatedTo(ChronoUnit.MILLIS).toString());
    }

    /** After a page with this cursor. */
    public static Position after(String cursor) {
      return new Position("cursor", cursor);
    }
  }

  /** Records of all shards by arrival; continue with {@link Position#after} the cursor. */
  public record Page(List<StreamRecord> records, String nextCursor, double behindSeconds, boolean hasGaps) {}

  /** Read one page, waiting for its first record up to a number of seconds. */
  public Page readPage(Position from, int waitSeconds) {
    Map<String, String> query = new HashMap<>(Map.of(from.parameter(), from.value(), "limit", "1000"));
    if (waitSeconds > 0) query.put("wait_seconds", Integer.toString(waitSeconds));
    JsonNode page = client.get(path("records"), query);
    Gap.report(page.path("gaps"), onGap);
    return new Page(
        StreamRecord.allOf(page.path("records")),
        page.path("next_cursor").asText(),
        page.path("behind_seconds").asDouble(),
        !page.path("gaps").isEmpty());
  }

  /** Iterate over the records that there are. */
  public Iterable<StreamRecord> read(Position from) {
    return () -> new Records(from, false);
  }

  /** Iterate over records, waiting for more without an end. */
  public Iterable<StreamRecord> follow(Position from) {
    return () -> new Records(from, true);
  }

  private final class Records implements Iterator<StreamRecord> {
    private final Deque<StreamRecord> buffer = new ArrayDeque<>();
    private final boolean isFollowing;
    private Position from;
    private boolean isAtEnd;

    Records(Position from, boolean isFollowing) {
      this.from = from;
      this.isFollowing = isFollowing;
    }

    @Override
    public boolean hasNext() {
      while (buffer.isEmpty() && !isAtEnd) {
        boolean isPlaced = !from.equals(Position.LATEST); // a repeat of this one would begin later
        Page page = readPage(from, isFollowing && isPlaced ? WAIT_SECONDS : 0);
        buffer.addAll(page.records());
        boolean isSame = page.nextCursor().equals(from.value());
        isAtEnd = !isFollowing && buffer.isEmpty() && !page.hasGaps() && isSame;
        from = Position.after(page.nextCursor());
      }
      return !buffer.isEmpty();
    }

    @Override
    public StreamRecord next() {
      if (!hasNext()) throw new NoSuchElementException();
      return buffer.remove();
    }
  }
}
