import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.locks.LockSupport;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Deserializer;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.TimeWindowedDeserializer;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.WindowedSerdes;
import org.apache.kafka.streams.state.WindowStore;

/**
 * Windowed totals of clicks by Kafka Streams, and the client that writes clicks and reads the rows.
 *
 * <p>Each reads commands from standard input, and answers each with a line:
 *
 * <pre>
 *   app BROKER STATE     start APPLICATION INPUT OUTPUT   run it, instead of the one before
 *                        stop
 *   client BROKER        create TOPIC                     of one partition
 *                        fill TOPIC FILE                  append lines of key, event time and data, separated by tabs
 *                        follow OUTPUT                    read committed rows from its beginning, in the background
 *                        complete CLICKS                  wait until the rows have so many
 *                        live TOPIC FILE RATE             append so many a second; milliseconds from append to row of each
 *                        rows                             page, start of the window, clicks, ms, newest
 * </pre>
 */
public final class Clicks {
  static final Duration WINDOW = Duration.ofSeconds(10), GRACE = Duration.ofSeconds(10);
  static final ObjectMapper JSON = new ObjectMapper();

  record Total(long clicks, long ms, long newest) {
    Total plus(String click) {
      try {
        JsonNode fields = JSON.readTree(click);
        long number = fields.get("n").asLong();
        return new Total(clicks + 1, ms + fields.get("ms").asLong(), Math.max(newest, number));
      } catch (java.io.IOException error) {
        throw new IllegalArgumentException(error);
      }
    }

    byte[] encoded() {
      return ByteBuffer.allocate(24).putLong(clicks).putLong(ms).putLong(newest).array();
    }

    static Total decoded(byte[] bytes) {
      ByteBuffer buffer = ByteBuffer.wrap(bytes);
      return new Total(buffer.getLong(), buffer.getLong(), buffer.getLong());
    }
  }

  static final Serde<Total> TOTALS =
      Serdes.serdeFrom(
          (topic, total) -> total == null ? null : total.encoded(),
          (topic, bytes) -> bytes == null ? null : Total.decoded(bytes));

  record Sent(long number, long nanos) {}

  public static void main(String[] words) throws Exception {
    boolean isApp = words[0].equals("app");
    App app = isApp ? new App(words[1], words[2]) : null;
    Client client = isApp ? null : new Client(words[1]);
    BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
    for (String line; (line = input.readLine()) != null; ) {
      String[] command = line.split(" ");
      System.out.println(isApp ? app.answer(command) : client.answer(command));
      System.out.flush();
    }
    System.exit(0);
  }

  static final class App {
    private final String broker, state;
    private KafkaStreams streams;

    App(String broker, String state) {
      this.broker = broker;
      this.state = state;
    }

    String answer(String[] command) {
      if (streams != null) {
        streams.close();
        streams = null;
      }
      if (command[0].equals("start")) {
        streams = new KafkaStreams(topology(command[2], command[3]).build(), settings(command[1]));
        streams.start();
      }
      return "done";
    }

    private StreamsBuilder topology(String input, String output) {
      StreamsBuilder builder = new StreamsBuilder();
      builder.stream(input, Consumed.with(Serdes.String(), Serdes.String()))
          .groupByKey()
          .windowedBy(TimeWindows.ofSizeAndGrace(WINDOW, GRACE))
          .aggregate(
              () -> new Total(0, 0, -1),
              (page, click, total) -> total.plus(click),
              Materialized.<String, Total, WindowStore<Bytes, byte[]>>as("clicks")
                  .withKeySerde(Serdes.String())
                  .withValueSerde(TOTALS))
          .toStream()
          .to(
              output,
              Produced.with(
                  WindowedSerdes.timeWindowedSerdeFrom(String.class, WINDOW.toMillis()), TOTALS));
      return builder;
    }

    private Properties settings(String application) {
      Properties settings = new Properties();
      settings.put(StreamsConfig.APPLICATION_ID_CONFIG, application);
      settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, broker);
      settings.put(StreamsConfig.STATE_DIR_CONFIG, state);
      settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
      return settings;
    }
  }

  static final class Client {
    private final String broker;
    private final KafkaProducer<String, String> producer;
    private final Map<Windowed<String>, Total> rows = new HashMap<>();
    private final Map<Windowed<String>, ArrayDeque<Sent>> waiting = new HashMap<>();
    private final List<Double> latencies = new ArrayList<>();
    private Thread follower;
    private volatile boolean follows;
    private long clicks;

    Client(String broker) {
      this.broker = broker;
      this.producer = new KafkaProducer<>(settings(), new StringSerializer(), new StringSerializer());
    }

    private Properties settings() {
      Properties settings = new Properties();
      settings.put("bootstrap.servers", broker);
      settings.put("acks", "all");
      settings.put("linger.ms", "0");
      settings.put("isolation.level", "read_committed");
      settings.put("auto.offset.reset", "earliest");
      return settings;
    }

    String answer(String[] command) throws Exception {
      switch (command[0]) {
        case "create" -> create(command[1]);
        case "fill" -> fill(command[1], Path.of(command[2]));
        case "follow" -> follow(command[1]);
        case "complete" -> complete(Long.parseLong(command[1]));
        case "live" -> {
          return live(command[1], Path.of(command[2]), Double.parseDouble(command[3]));
        }
        case "rows" -> {
          return listed();
        }
        default -> throw new IllegalArgumentException(command[0]);
      }
      return "done";
    }

    private void create(String topic) throws Exception {
      Properties settings = new Properties();
      settings.put("bootstrap.servers", broker);
      try (Admin admin = Admin.create(settings)) {
        admin.createTopics(List.of(new NewTopic(topic, 1, (short) 1))).all().get();
      }
    }

    private ProducerRecord<String, String> click(String topic, String line) {
      String[] fields = line.split("\t");
      return new ProducerRecord<>(topic, 0, Long.parseLong(fields[1]), fields[0], fields[2]);
    }

    private void fill(String topic, Path file) throws Exception {
      for (String line : Files.readAllLines(file)) {
        producer.send(click(topic, line));
      }
      producer.flush();
    }

    private void follow(String output) throws Exception {
      follows = false;
      if (follower != null) {
        follower.join();
      }
      synchronized (this) {
        rows.clear();
        clicks = 0;
      }
      follows = true;
      follower = new Thread(() -> read(output));
      follower.start();
    }

    private void read(String output) {
      Deserializer<Windowed<String>> keys =
          new TimeWindowedDeserializer<>(new StringDeserializer(), WINDOW.toMillis());
      try (var consumer = new KafkaConsumer<>(settings(), keys, TOTALS.deserializer())) {
        List<TopicPartition> partitions = List.of(new TopicPartition(output, 0));
        consumer.assign(partitions);
        consumer.seekToBeginning(partitions);
        while (follows) {
          var batch = consumer.poll(Duration.ofMillis(200));
          synchronized (this) {
            batch.forEach(change -> apply(change.key(), change.value()));
            notifyAll();
          }
        }
      }
    }

    private void apply(Windowed<String> key, Total total) {
      Total before = rows.put(key, total);
      clicks += total.clicks() - (before == null ? 0 : before.clicks());
      ArrayDeque<Sent> sent = waiting.get(key);
      while (sent != null && !sent.isEmpty() && sent.peek().number() <= total.newest()) {
        latencies.add((System.nanoTime() - sent.poll().nanos()) / 1e6);
      }
    }

    private synchronized void complete(long expected) throws InterruptedException {
      while (clicks < expected) {
        wait();
      }
    }

    private String live(String topic, Path file, double rate) throws Exception {
      List<String> lines = Files.readAllLines(file);
      synchronized (this) {
        latencies.clear();
        waiting.clear();
      }
      long began = System.nanoTime();
      long expected = clicks + lines.size();
      for (int nth = 0; nth < lines.size(); nth++) {
        long left;
        while ((left = began + (long) (nth / rate * 1e9) - System.nanoTime()) > 0) {
          LockSupport.parkNanos(left);
        }
        var record = click(topic, lines.get(nth));
        long start = record.timestamp() / WINDOW.toMillis() * WINDOW.toMillis();
        var window = new org.apache.kafka.streams.kstream.internals.TimeWindow(
            start, start + WINDOW.toMillis());
        long number = JSON.readTree(record.value()).get("n").asLong();
        synchronized (this) {
          waiting
              .computeIfAbsent(new Windowed<>(record.key(), window), any -> new ArrayDeque<>())
              .add(new Sent(number, System.nanoTime()));
        }
        producer.send(record);
      }
      complete(expected);
      synchronized (this) {
        return JSON.writeValueAsString(latencies);
      }
    }

    private synchronized String listed() throws Exception {
      List<Object> listed = new ArrayList<>();
      rows.forEach(
          (key, total) ->
              listed.add(
                  List.of(
                      key.key(), key.window().start(), total.clicks(), total.ms(), total.newest())));
      return JSON.writeValueAsString(listed);
    }
  }
}
