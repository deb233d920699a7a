package millstream;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.MissingNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import millstream.MillstreamException.AlreadyExists;
import millstream.MillstreamException.Interrupted;
import millstream.MillstreamException.OutcomeUnknown;
import millstream.core.ApiClient;

/**
 * Client of one service, safe for concurrent use.
 *
 * <pre>{@code
 * try (Millstream client = Millstream.create()) { // MILLSTREAM_URL, MILLSTREAM_API_KEY
 *   client.queue("orders").send(Map.of("order", 7));
 * }
 * }</pre>
 */
public final class Millstream implements AutoCloseable {
  /** The service on this machine. */
  public static final String DEFAULT_URL = "http://127.0.0.1:8080";

  private final Builder options;
  private final RetryingHttpClient http;
  private final ExecutorService executor =
      Executors.newCachedThreadPool(
          task -> {
            Thread thread = new Thread(task, "millstream");
            thread.setDaemon(true);
            return thread;
          });

  private Millstream(Builder options) {
    this.options = options;
    this.http = new RetryingHttpClient(options.http.executor(executor).build(), this);
  }

  /** Return a client of MILLSTREAM_URL, with the key in MILLSTREAM_API_KEY. */
  public static Millstream create() {
    return builder().build();
  }

  /** Return a builder, whose defaults are those of {@link #create}. */
  public static Builder builder() {
    return new Builder();
  }

  /** Options of a client. */
  public static final class Builder {
    private String url = environment("MILLSTREAM_URL", DEFAULT_URL);
    private Supplier<String> apiKey = () -> environment("MILLSTREAM_API_KEY", "");
    private String namespace = "";
    private boolean primary;
    private Retries retries = Retries.DEFAULT;
    private Duration timeout = Duration.ofSeconds(30);
    private HttpClient.Builder http =
        HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).connectTimeout(Duration.ofSeconds(5));

    private static String environment(String name, String other) {
      String value = System.getenv(name);
      return value == null || value.isEmpty() ? other : value;
    }

    /** Set the URL of the service. */
    public Builder url(String value) {
      url = value.replaceAll("/+$", "");
      return this;
    }

    /** Set the key or token. */
    public Builder apiKey(String value) {
      return apiKey(() -> value);
    }

    /** Set what returns the key or token; it is called before each attempt. */
    public Builder apiKey(Supplier<String> value) {
      apiKey = value;
      return this;
    }

    /** Set the namespace of all calls. */
    public Builder namespace(String value) {
      namespace = value;
      return this;
    }

    /**
     * Have writes acknowledged when they are on the primary's disk, without waiting for replicas: sooner, but lost with the
     * primary. It changes nothing where stores are not replicated.
     */
    public Builder primaryAcknowledgement() {
      primary = true;
      return this;
    }

    /** Set the time limits of retries. */
    public Builder retries(Retries value) {
      retries = value;
      return this;
    }

    /** Limit each attempt, beyond the wait that a call requests. */
    public Builder timeout(Duration value) {
      timeout = value;
      return this;
    }

    /** Set the builder of the HTTP client, for a proxy or your own certificate authority. */
    public Builder http(HttpClient.Builder value) {
      http = value;
      return this;
    }

    /** Return the client. It connects with its first call. */
    public Millstream build() {
      return new Millstream(this);
    }
  }

  /** Return a queue, whether it exists or not. */
  public Queue queue(String name) {
    return new Queue(this, name);
  }

  /** Return a stream, whether it exists or not. */
  public Stream stream(String name) {
    return new Stream(this, name);
  }

  /** Return a consumer group, whether it exists or not. */
  public Group group(String name) {
    return new Group(this, name);
  }

  /** Return the generated client, which has every operation, with the same key and retries. */
  public ApiClient core() {
    ApiClient core =
        new ApiClient() {
          @Override
          public HttpClient getHttpClient() {
            return http;
          }
        };
    core.updateBaseUri(options.url);
    return core;
  }

  /** End the threads of the client. */
  @Override
  public void close() {
    executor.shutdownNow();
  }

  String url() {
    return options.url;
  }

  Retries retries() {
    return options.retries;
  }

  Duration timeout() {
    return options.timeout;
  }

  ExecutorService executor() {
    return executor;
  }

  Map<String, String> headers() {
    Map<String, String> headers = new HashMap<>(Map.of("User-Agent", "millstream-client-java/0.1.0"));
    String key = options.apiKey.get();
    if (!key.isEmpty()) headers.put("Authorization", "Bearer " + key);
    if (!options.namespace.isEmpty()) headers.put("Millstream-Namespace", options.namespace);
    if (options.primary) headers.put("Millstream-Acknowledge", "primary");
    return headers;
  }

  // ── Calls ──

  /** Send a call with a JSON body, or null; return the decoded response, or null for an empty one. */
  JsonNode send(
      String method, List<String> path, Map<String, ?> query, Map<String, String> headers, Object body) {
    HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(url() + pathOf(path) + queryOf(query)));
    headers.forEach(request::header);
    if (body != null) request.header("Content-Type", Json.TYPE);
    request.method(
        method, body == null ? BodyPublishers.noBody() : BodyPublishers.ofByteArray(Json.encode(body)));
    try {
      return read(http.send(request.build(), BodyHandlers.ofByteArray()));
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
      throw new Interrupted(error);
    }
  }

  JsonNode get(List<String> path, Map<String, ?> query) {
    return send("GET", path, query, Map.of(), null);
  }

  JsonNode post(List<String> path, Object body) {
    return send("POST", path, Map.of(), Map.of(), body);
  }

  private JsonNode read(HttpResponse<byte[]> response) {
    int status = response.statusCode();
    if (status >= 300) {
      throw MillstreamException.of(RetryingHttpClient.problemOf(status, response.headers(), response.body()));
    }
    if (response.body().length == 0) return null;
    JsonNode tree = Json.treeOrNothing(response.body());
    if (tree.isObject()) return tree;
    String kind = response.headers().firstValue("content-type").orElse("no content type");
    throw RetryingHttpClient.notMillstream(url(), status, kind, null);
  }

  private static String pathOf(List<String> words) {
    return words.stream().map(Millstream::encoded).collect(Collectors.joining("/", "/v1/", ""));
  }

  private static String queryOf(Map<String, ?> query) {
    if (query.isEmpty()) return "";
    return query.entrySet().stream()
        .map(pair -> pair.getKey() + "=" + encoded(pair.getValue().toString()))
        .collect(Collectors.joining("&", "?", ""));
  }

  private static String encoded(String word) {
    return URLEncoder.encode(word, StandardCharsets.UTF_8).replace("+", "%20");
  }

  /**
   * Send a PUT that only creates; return an existing object if its settings are the same: an attempt without a response
   * may have created it.
   */
  Stored create(List<String> path, Map<String, ?> settings) {
    try {
      return Stored.of(send("PUT", path, Map.of(), Map.of("If-None-Match", "*"), settings));
    } catch (AlreadyExists | OutcomeUnknown error) {
      JsonNode members = error instanceof OutcomeUnknown ? membersOf(error.getCause()) : error.members();
      boolean exists = members.has("current") && members.path("changes").isEmpty();
      if (!exists) throw error;
      return Stored.of(((ObjectNode) members.path("current")).put("created", false));
    }
  }

  private static JsonNode membersOf(Throwable cause) {
    return cause instanceof MillstreamException failure ? failure.members() : MissingNode.getInstance();
  }

  Stored apply(List<String> path, Map<String, ?> settings) {
    return Stored.of(send("PUT", path, Map.of(), Map.of(), settings));
  }
}
