package millstream;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import millstream.MillstreamException.BadRequest;
import millstream.MillstreamException.NeverConnected;
import millstream.MillstreamException.NotMillstream;
import millstream.MillstreamException.OutcomeUnknown;
import millstream.core.api.QueuesApi;
import org.junit.jupiter.api.Test;

/** Retries against a scripted service. */
class RetriesTest {
  private static final Retries QUICK =
      new Retries(Duration.ofSeconds(1), Duration.ofMillis(300), Duration.ofMillis(1), Duration.ofMillis(5));
  private static final String SENT = "{\"messages\":[{\"id\":\"m\",\"offset\":3,\"duplicate\":false}]}";

  /** A service that answers its nth connection with the nth step; an empty step breaks the connection. */
  private static final class Script implements AutoCloseable {
    private final ServerSocket server = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
    private final List<String> keys = new CopyOnWriteArrayList<>();
    private final List<String> acknowledgements = new CopyOnWriteArrayList<>();
    private final List<String> steps;

    Script(String... steps) throws IOException {
      this.steps = List.of(steps);
      Thread thread = new Thread(this::serve);
      thread.setDaemon(true);
      thread.start();
    }

    private void serve() {
      for (int count = 0; !server.isClosed(); count++) {
        try (Socket socket = server.accept()) {
          keys.add(readKey(socket));
          String step = steps.get(Math.min(count, steps.size() - 1));
          socket.getOutputStream().write(step.getBytes(StandardCharsets.UTF_8));
          socket.getOutputStream().flush();
        } catch (IOException isClosed) {
          return;
        }
      }
    }

    private String readKey(Socket socket) throws IOException {
      BufferedReader reader = new BufferedReader(new InputStreamReader(socket.getInputStream()));
      String key = "";
      int length = 0;
      for (String line = reader.readLine(); line != null && !line.isEmpty(); line = reader.readLine()) {
        String[] header = line.split(": ", 2);
        if (header[0].equalsIgnoreCase("idempotency-key")) key = header[1];
        if (header[0].equalsIgnoreCase("millstream-acknowledge")) acknowledgements.add(header[1]);
        if (header[0].equalsIgnoreCase("content-length")) length = Integer.parseInt(header[1]);
      }
      for (int at = 0; at < length; at++) reader.read();
      return key;
    }

    Millstream client() {
      return builder().build();
    }

    Millstream.Builder builder() {
      return Millstream.builder().url("http://127.0.0.1:" + server.getLocalPort()).retries(QUICK);
    }

    @Override
    public void close() throws IOException {
      server.close();
    }
  }

  private static String answer(int status, String body) {
    return "HTTP/1.1 " + status + " X\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: "
        + body.length() + "\r\n\r\n" + body;
  }

  @Test
  void primaryAcknowledgementIsRequestedByWhoWantsIt() throws Exception {
    try (Script script = new Script(answer(200, SENT));
        Millstream client = script.client();
        Millstream sooner = script.builder().primaryAcknowledgement().build()) {
      client.queue("orders").send("hello");
      assertEquals(List.of(), script.acknowledgements);

      sooner.queue("orders").send("hello");
      assertEquals(List.of("primary"), script.acknowledgements);
    }
  }

  @Test
  void sendIsRepeatedWithItsKey() throws Exception {
    String busy = answer(503, "{\"code\":\"storage_busy\",\"retryable\":true}");
    try (Script script = new Script("", busy, answer(200, SENT)); Millstream client = script.client()) {
      assertEquals(3, client.queue("orders").send("hello").offset());

      assertEquals(3, script.keys.size());
      assertEquals(1, List.copyOf(new java.util.HashSet<>(script.keys)).size());
      assertTrue(!script.keys.get(0).isEmpty());
    }
  }

  @Test
  void unsafeCallIsNotRepeatedWhenItsOutcomeIsUnknown() throws Exception {
    try (Script script = new Script(""); Millstream client = script.client()) {
      QueuesApi queues = new QueuesApi(client.core());

      assertThrows(OutcomeUnknown.class, () -> queues.purgeQueue("orders"));
      assertEquals(1, script.keys.size());
    }
  }

  @Test
  void rejectionAfterAnUnknownOutcomeIsUnknown() throws Exception {
    String timeout = answer(504, "{\"code\":\"storage_timeout\",\"retryable\":true,\"outcome\":\"unknown\"}");
    try (Script script = new Script(timeout, answer(409, "{\"code\":\"x\"}")); Millstream client = script.client()) {
      assertThrows(OutcomeUnknown.class, () -> client.queue("orders").send("hello"));
    }
  }

  @Test
  void repeatedDeleteOfNothingIsSuccess() throws Exception {
    String missing = answer(404, "{\"code\":\"queue_not_found\"}");
    try (Script script = new Script(answer(504, ""), missing); Millstream client = script.client()) {
      client.queue("orders").delete();

      assertEquals(2, script.keys.size());
    }
  }

  @Test
  void createAfterALostResponseReturnsTheObject() throws Exception {
    String exists = answer(412, "{\"code\":\"precondition_failed\",\"current\":{\"shards\":2},\"changes\":[]}");
    try (Script script = new Script("", exists); Millstream client = script.client()) {
      assertEquals(2, client.stream("clicks").create(Map.of("shards", 2)).settings().path("shards").asInt());
    }
  }

  @Test
  void serviceThatWasNeverReachedFailsSoon() {
    try (Millstream client = Millstream.builder().url("http://127.0.0.1:1").retries(QUICK).build()) {
      assertThrows(NeverConnected.class, () -> client.queue("orders").send("hello"));
    }
  }

  @Test
  void otherServiceIsNotMillstream() throws Exception {
    try (Script script = new Script(answer(200, "<html>")); Millstream client = script.client()) {
      assertThrows(NotMillstream.class, () -> client.queue("orders").send("hello"));
    }
  }

  @Test
  void problemIsATypedException() throws Exception {
    String problem = "{\"code\":\"validation_failed\",\"detail\":\"Wrong\",\"request_id\":\"r1\","
        + "\"errors\":[{\"pointer\":\"/body\",\"detail\":\"no\",\"code\":\"c\"}]}";
    try (Script script = new Script(answer(422, problem)); Millstream client = script.client()) {
      BadRequest error = assertThrows(BadRequest.class, () -> client.queue("orders").send("hello"));

      assertEquals(List.of("r1", "validation_failed", "/body"),
          new ArrayList<>(List.of(error.requestId(), error.code(), error.faults().get(0).pointer())));
      assertEquals(422, error.status());
    }
  }
}
