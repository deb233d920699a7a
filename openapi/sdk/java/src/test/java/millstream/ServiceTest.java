package millstream;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import millstream.MillstreamException.AlreadyExists;
import millstream.MillstreamException.ItemsRejected;
import millstream.MillstreamException.NotFound;
import millstream.core.api.GroupsApi;
import millstream.core.model.DeadLetterOut;
import millstream.core.model.QueueStatsOut;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledIfEnvironmentVariable;

/** The SDK against the service in MILLSTREAM_URL. */
@EnabledIfEnvironmentVariable(named = "MILLSTREAM_URL", matches = ".+")
@Timeout(60)
class ServiceTest {
  private final Millstream client = Millstream.create();
  private final String name = "java-" + System.nanoTime();

  @AfterEach
  void close() {
    client.close();
  }

  @Test
  void queueIsCreatedOnce() {
    Queue queue = client.queue(name);

    assertTrue(queue.create(Map.of("attempts_max", 3)).created());
    assertFalse(queue.create(Map.of("attempts_max", 3)).created());
    AlreadyExists error = assertThrows(AlreadyExists.class, () -> queue.create(Map.of("attempts_max", 4)));
    assertEquals("/attempts_max", error.changes().get(0).pointer());
    assertEquals(1, queue.apply(Map.of("attempts_max", 4)).changes().size());
    queue.delete();
    assertThrows(NotFound.class, queue::stats);
  }

  @Test
  void queueSendsAndReceivesAnyBody() {
    Queue queue = client.queue(name);
    queue.create();

    queue.send(Map.of("total", 12.5));
    queue.sendMany(
        List.of("text", new byte[] {0, -1}, NewMessage.of("noted").headers(Map.of("source", "web")).contentType("a/b")));
    NewMessage keyed = NewMessage.of("once").idempotencyKey(name);
    assertEquals(queue.send(keyed).id(), queue.send(keyed).id());

    List<Message> messages = queue.receive(10, Duration.ZERO);
    List<String> bodies = new ArrayList<>(messages.stream().map(ServiceTest::latin).toList());
    Collections.sort(bodies);
    assertEquals(List.of("\u0000\u00ff", "noted", "once", "text", "{\"total\":12.5}"), bodies);
    Message noted = messages.stream().filter(message -> message.text().equals("noted")).findFirst().orElseThrow();
    assertEquals(Map.of("source", "web"), noted.headers());
    assertEquals("a/b", noted.contentType());

    messages.parallelStream().forEach(
        message -> {
          message.extend(Duration.ofMinutes(1));
          message.ack();
        });
    assertThrows(ItemsRejected.class, () -> noted.nack("late"));
    assertEquals(0, queue.stats().getReady() + queue.stats().getInFlight());
  }

  private static String latin(Message message) {
    return new String(message.body(), StandardCharsets.ISO_8859_1);
  }

  @Test
  void workerAcksRetriesAndRejects() throws Exception {
    Queue queue = client.queue(name);
    queue.create(Map.of("attempts_max", 2));
    queue.sendMany(List.of("fine", "retried", "rejected", "failing", "broken", "slow"));
    Map<String, AtomicInteger> attempts = new ConcurrentHashMap<>();

    try (Worker worker = queue.worker(message -> handle(message, attempts)).concurrency(8).lease(Duration.ofSeconds(1))) {
      worker.start();
      while (!isSettled(queue.stats())) Thread.sleep(50);
    }

    List<String> reasons = new ArrayList<>();
    for (DeadLetterOut letter : queue.deadLetters()) {
      boolean hasStack = letter.getDetails() != null && letter.getDetails().contains("ServiceTest.java");
      String last = letter.getLastFailureReason();
      String reason = last == null || last.isEmpty() ? letter.getReason() : last;
      reasons.add(letter.getBody() + ": " + reason + (hasStack ? " with a stack" : ""));
    }
    Collections.sort(reasons);
    String broken = "broken: java.lang.IllegalStateException: index with a stack";
    assertEquals(List.of(broken, "failing: always", "rejected: a negative total"), reasons);
    assertEquals(1, attempts.get("slow").get());
  }

  private static void handle(Message message, Map<String, AtomicInteger> attempts) throws Exception {
    int attempt = attempts.computeIfAbsent(message.text(), body -> new AtomicInteger()).incrementAndGet();
    switch (message.text()) {
      case "retried" -> {
        if (attempt == 1) throw new RetryException(Duration.ZERO, "not yet");
      }
      case "rejected" -> throw new RejectException("a negative total");
      case "failing" -> throw new RetryException(Duration.ZERO, "always");
      case "broken" -> {
        if (attempt == 1) throw new RetryException(Duration.ZERO, "first");
        throw new IllegalStateException("index");
      }
      case "slow" -> Thread.sleep(2_500); // longer than its lease
      default -> { }
    }
  }

  private static boolean isSettled(QueueStatsOut stats) {
    return stats.getReady() + stats.getInFlight() + stats.getDelayed() == 0 && stats.getDeadLettered() == 3;
  }

  @Test
  void workerFinishesItsMessagesWhenStopped() throws Exception {
    Queue queue = client.queue(name);
    queue.create();
    queue.sendMany(List.of("quick", "endless"));
    CountDownLatch begun = new CountDownLatch(2);
    Worker worker =
        queue.worker(
                message -> {
                  begun.countDown();
                  Thread.sleep(message.text().equals("endless") ? 60_000 : 100);
                })
            .concurrency(2)
            .grace(Duration.ofMillis(500))
            .start();
    assertTrue(begun.await(20, TimeUnit.SECONDS));

    worker.close();

    assertEquals(List.of(1L, 0L), List.of(queue.stats().getReady(), queue.stats().getInFlight()));
  }

  @Test
  void workerEndsWhenItsQueueIsMissing() {
    assertThrows(NotFound.class, () -> client.queue(name).worker(message -> {}).run());
  }

  @Test
  void streamIsReadAndFollowed() {
    Stream stream = client.stream(name);
    stream.create(Map.of("shards", 2));
    Instant moment = Instant.parse("2026-01-02T03:04:05.006Z");

    stream.append(NewRecord.of("ann", Map.of("page", "/")).withEventTime(moment));
    stream.appendMany(List.of(NewRecord.of("ann", "two"), NewRecord.of("ann", new byte[] {-1})));
    List<StreamRecord> records = new ArrayList<>();
    stream.read(Stream.Position.EARLIEST).forEach(records::add);

    assertEquals(List.of("{\"page\":\"/\"}", "two", "\ufffd"), records.stream().map(StreamRecord::text).toList());
    assertEquals(moment, records.get(0).eventTime());
    assertEquals("ann", records.get(2).key());

    client.executor().execute(
        () -> {
          try {
            Thread.sleep(200);
          } catch (InterruptedException error) {
            return;
          }
          stream.append("later");
        });
    assertEquals("later", stream.follow(Stream.Position.LATEST).iterator().next().text());
  }

  @Test
  void groupMembersShareAStream() throws Exception {
    Stream stream = client.stream(name);
    Group group = client.group(name);
    stream.create(Map.of("shards", 1));
    assertTrue(group.create(name, Map.of("session_timeout_seconds", 2)).created());
    for (int count = 0; count < 20; count++) stream.append(Integer.toString(count), "record " + count);

    try (Member member = group.member()) {
      member.work(
          batch -> {
            Thread.sleep(3_000); // longer than the session timeout
            assertEquals(20, batch.records().size());
            return false;
          });
    }

    assertEquals(0, group.lag().getRecords());
    assertEquals(0, new GroupsApi(client.core()).getConsumerGroup(name).getMembers().size());
  }

  @Test
  void batchIsDeliveredAgainWhenItsHandlerFails() {
    client.stream(name).create(Map.of());
    client.stream(name).append("again");
    Group group = client.group(name);
    group.create(name);

    Member broken = group.member("a");
    assertThrows(IllegalStateException.class, () -> broken.work(batch -> { throw new IllegalStateException(); }));
    broken.leave();
    try (Member member = group.member("b")) {
      Member.Batch batch = member.fetch(10, Duration.ofSeconds(1));
      assertEquals("again", batch.records().get(0).text());
      member.commit(batch);
    }
  }
}
