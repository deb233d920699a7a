package millstream;

import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Future;
import java.util.function.Consumer;
import millstream.MillstreamException.Conflict;
import millstream.MillstreamException.ItemError;
import millstream.MillstreamException.ItemsRejected;
import millstream.MillstreamException.NotFound;

/**
 * One member of a group, from its first fetch for as long as it keeps fetching. Use it from one thread.
 *
 * <p>Records that it does not commit are delivered again, to it or to the next member that reads their shards.
 */
public final class Member implements AutoCloseable {
  private static final System.Logger LOG = System.getLogger("millstream");
  private static final Set<String> FENCED = Set.of("stale_generation", "member_unknown");
  private static final Duration WAIT = Duration.ofSeconds(20);
  private static final int FETCH_MAX = 1_000;

  private final Group group;
  private final String name;
  private Consumer<Gap> onGap = Gap.WARN;
  private String token = ""; // of the last read, by which the service identifies this instance
  private long generation;

  Member(Group group, String name) {
    this.group = group;
    this.name = name;
  }

  /** The name of the member. */
  public String name() {
    return name;
  }

  /** Set what is called when records that retention deleted are skipped. The default logs a warning. */
  public Member onGap(Consumer<Gap> value) {
    onGap = value;
    return this;
  }

  /** Records of a member's shards; {@code token} commits them. */
  public record Batch(
      List<StreamRecord> records, List<Integer> shards, long generation, String token, boolean hasGaps) {}

  /** Works on one batch. */
  @FunctionalInterface
  public interface Handler {
    /** Return true for the next batch, false to commit this one and stop. */
    boolean handle(Batch batch) throws Exception;
  }

  /**
   * Join if necessary, and return the next records, waiting for the first. Before a commit, it returns the same records
   * again.
   */
  public Batch fetch(int limit, Duration wait) {
    Map<String, Object> query = new HashMap<>(Map.of("member", name, "limit", limit));
    if (!token.isEmpty()) query.put("token", token);
    if (!wait.isZero()) query.put("wait_seconds", NewMessage.seconds(wait));
    JsonNode read = group.client().get(group.path("records"), query);
    token = read.path("token").asText();
    generation = read.path("generation").asLong();
    Gap.report(read.path("gaps"), onGap);
    List<Integer> shards = new ArrayList<>();
    read.path("shards").forEach(shard -> shards.add(shard.asInt()));
    List<StreamRecord> records = StreamRecord.allOf(read.path("records"));
    return new Batch(records, shards, generation, token, !read.path("gaps").isEmpty());
  }

  /**
   * Commit a batch.
   *
   * @throws ItemsRejected with the code stale_generation for shards that were reassigned
   */
  public void commit(Batch batch) {
    JsonNode answer = group.client().post(group.path("commit"), Map.of("token", batch.token()));
    List<ItemError> errors = Queue.errorsOf(answer.path("offsets"));
    if (errors.stream().anyMatch(error -> error != null)) throw new ItemsRejected(errors);
  }

  /** Keep the shards of a batch while it is processed; return the time until the next heartbeat is due. */
  public Duration heartbeat(Batch batch) {
    Map<String, Object> body = Map.of("generation", batch.generation(), "owned", batch.shards());
    JsonNode answer = group.client().post(group.path("members", name, "heartbeat"), body);
    return Duration.ofMillis((long) (answer.path("heartbeat_seconds").asDouble() * 1_000));
  }

  /**
   * Pass batches to the handler, and commit each when it returns. An exception of the handler is thrown: the batch is
   * delivered again. While the handler runs, heartbeats keep the shards; if they were reassigned nevertheless, the
   * batch is not committed. Ends when the handler returns false, or with Interrupted.
   */
  public void work(Handler handler) throws Exception {
    boolean isWorking = true;
    while (isWorking) {
      Batch batch = fetch(FETCH_MAX, WAIT);
      if (!batch.records().isEmpty()) isWorking = handle(batch, handler);
      if (!batch.records().isEmpty() || batch.hasGaps()) unlessFenced(() -> commit(batch));
    }
  }

  private boolean handle(Batch batch, Handler handler) throws Exception {
    Future<?> heartbeats = group.client().executor().submit(() -> sendHeartbeats(batch));
    try {
      return handler.handle(batch);
    } finally {
      heartbeats.cancel(true);
    }
  }

  private void sendHeartbeats(Batch batch) {
    Duration pause = Duration.ofSeconds(1);
    try {
      while (true) {
        Thread.sleep(pause.toMillis());
        pause = heartbeat(batch);
      }
    } catch (InterruptedException | MillstreamException.Interrupted error) {
      // the handler has ended
    } catch (MillstreamException error) {
      LOG.log(System.Logger.Level.WARNING, "heartbeat of {0} failed: {1}", name, error.getMessage());
    }
  }

  /** Leave the group: the member's shards are reassigned immediately. */
  public void leave() {
    Map<String, ?> query = generation == 0 ? Map.of() : Map.of("generation", generation);
    token = "";
    generation = 0;
    unlessFenced(() -> group.client().send("DELETE", group.path("members", name), query, Map.of(), null));
  }

  /** Leave the group. */
  @Override
  public void close() {
    leave();
  }

  /** Ignore that shards belong to another member now, which receives their records again. */
  private static void unlessFenced(Runnable call) {
    try {
      call.run();
    } catch (ItemsRejected rejected) {
      boolean isFenced =
          rejected.errors().stream().allMatch(error -> error == null || FENCED.contains(error.code()));
      if (!isFenced) throw rejected;
    } catch (Conflict | NotFound refused) {
      if (!FENCED.contains(refused.code())) throw refused;
    }
  }
}
