package millstream;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.MissingNode;
import java.net.Authenticator;
import java.net.ConnectException;
import java.net.CookieHandler;
import java.net.ProxySelector;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpConnectTimeoutException;
import java.net.http.HttpHeaders;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandler;
import java.net.http.HttpResponse.BodySubscriber;
import java.net.http.HttpResponse.BodySubscribers;
import java.net.http.HttpResponse.PushPromiseHandler;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executor;
import java.util.concurrent.Flow;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLHandshakeException;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.SSLSession;
import millstream.MillstreamException.ConnectionFailed;
import millstream.MillstreamException.Interrupted;
import millstream.MillstreamException.NotMillstream;
import millstream.MillstreamException.OutcomeUnknown;
import millstream.MillstreamException.Problem;

/** HTTP client that repeats requests where that is safe. Calls that take an idempotency key get one. */
final class RetryingHttpClient extends HttpClient {
  private final HttpClient base;
  private final Millstream client;
  private final Attempts.Reachability service = new Attempts.Reachability();

  RetryingHttpClient(HttpClient base, Millstream client) {
    this.base = base;
    this.client = client;
  }

  @Override
  public <T> HttpResponse<T> send(HttpRequest request, BodyHandler<T> handler) throws InterruptedException {
    byte[] body = request.bodyPublisher().map(RetryingHttpClient::bytesOf).orElse(null);
    Effects effect = Effects.of(request, body);
    Attempts attempts =
        new Attempts(client.retries(), service, effect.mayRepeat(), request.method().equals("GET"));
    while (true) {
      HttpRequest attempt = attemptOf(request, body, effect);
      try {
        Received received = exchange(attempt, handler, client.timeout().plus(effect.patience()));
        if (received.status() < 300) return received.to(handler, attempt);
        MillstreamException failure = failureOf(received);
        boolean isRepeatedDelete = attempts.mayHaveHappened() && request.method().equals("DELETE");
        if (isRepeatedDelete && failure.status() == 404) return Received.nothing(attempt).to(handler, attempt);
        pauseOrReturn(attempts, failure);
      } catch (Final rejection) {
        return rejection.received.to(handler, attempt);
      } catch (Unanswered unanswered) {
        Thread.sleep(attempts.pauseAfter(unanswered.failure).toMillis());
      }
    }
  }

  /** A rejection that is not repeated, which the caller reads. */
  private static final class Final extends Exception {
    private final transient Received received;

    Final(Received received) {
      super(null, null, false, false);
      this.received = received;
    }
  }

  /** An attempt without a response. */
  private static final class Unanswered extends Exception {
    private final transient MillstreamException failure;

    Unanswered(MillstreamException failure) {
      super(null, null, false, false);
      this.failure = failure;
    }
  }

  private void pauseOrReturn(Attempts attempts, MillstreamException failure) throws InterruptedException, Final {
    Duration pause;
    try {
      pause = attempts.pauseAfter(failure);
    } catch (MillstreamException last) {
      if (last == failure && failure instanceof Rejection rejection) throw new Final(rejection.received);
      throw last;
    }
    Thread.sleep(pause.toMillis());
  }

  /** A rejection with the response that it was made of. */
  private static final class Rejection extends MillstreamException {
    private final transient Received received;

    Rejection(Problem problem, Received received) {
      super(problem);
      this.received = received;
    }
  }

  private HttpRequest attemptOf(HttpRequest request, byte[] body, Effects effect) {
    HttpRequest.Builder builder = HttpRequest.newBuilder(request, (name, value) -> true);
    if (body != null) builder.method(request.method(), BodyPublishers.ofByteArray(body));
    effect.key().ifPresent(key -> builder.setHeader(Effects.IDEMPOTENCY_KEY, key));
    client.headers().forEach(builder::setHeader);
    return builder.build();
  }

  private <T> Received exchange(HttpRequest request, BodyHandler<T> handler, Duration timeout)
      throws InterruptedException, Unanswered {
    CompletableFuture<HttpResponse<Object>> future = base.sendAsync(request, bytesOrEvents(handler));
    try {
      HttpResponse<Object> response = future.get(timeout.toMillis(), TimeUnit.MILLISECONDS);
      service.isEstablished = true;
      return new Received(response.statusCode(), response.headers(), response.body(), response);
    } catch (TimeoutException error) {
      throw new Unanswered(unknown(error));
    } catch (ExecutionException error) {
      throw new Unanswered(unanswered(error.getCause()));
    } finally {
      future.cancel(true); // no effect on one that is done
    }
  }

  /** Read a response to its end within the attempt, but a stream of events as the caller does. */
  private static <T> BodyHandler<Object> bytesOrEvents(BodyHandler<T> handler) {
    return info -> {
      boolean isStream = info.headers().firstValue("content-type").orElse("").startsWith("text/event-stream");
      return isStream
          ? BodySubscribers.mapping(handler.apply(info), value -> new Events(value))
          : BodySubscribers.mapping(BodySubscribers.ofByteArray(), bytes -> bytes);
    };
  }

  private record Events(Object value) {}

  private MillstreamException unanswered(Throwable error) {
    String url = client.url();
    if (error instanceof SSLHandshakeException) {
      return new ConnectionFailed(Problem.unanswered("Cannot connect to " + url + ": " + error, false, false, error));
    }
    if (error instanceof ConnectException || error instanceof HttpConnectTimeoutException) {
      String reason = error.getMessage() == null ? "connection refused" : error.getMessage();
      return new ConnectionFailed(Problem.unanswered("Cannot reach " + url + ": " + reason, true, false, error));
    }
    return unknown(error);
  }

  private MillstreamException unknown(Throwable error) {
    service.isEstablished = true;
    String detail = "No answer came from " + client.url() + ": " + error;
    return new OutcomeUnknown(Problem.unanswered(detail, true, true, error));
  }

  private MillstreamException failureOf(Received received) {
    String kind = received.headers().firstValue("content-type").orElse("no content type");
    boolean isForeign = kind.startsWith("text/html") && List.of(403, 404, 405).contains(received.status());
    if (isForeign) return notMillstream(client.url(), received.status(), kind, null);
    return new Rejection(problemOf(received.status(), received.headers(), (byte[]) received.body()), received);
  }

  static NotMillstream notMillstream(String url, int status, String kind, Throwable cause) {
    String detail = url + " answers, but it is not Millstream (HTTP " + status + ", " + kind + ")";
    return new NotMillstream(
        new Problem(status, "", detail, false, false, Duration.ZERO, MissingNode.getInstance(), cause));
  }

  /** Return the problem of a response outside 2xx, which a proxy may have made. */
  static Problem problemOf(int status, HttpHeaders headers, byte[] body) {
    JsonNode members = Json.treeOrNothing(body);
    boolean isGateway = status == 502 || status == 503 || status == 504;
    boolean isProblem = members.has("code");
    return new Problem(
        status,
        isProblem ? members.path("code").asText() : "http_" + status,
        members.path("detail").asText("The answer was " + status + "."),
        isProblem ? members.path("retryable").asBoolean() : isGateway || status == 429,
        isProblem ? members.path("outcome").asText().equals("unknown") : isGateway,
        retryAfter(headers),
        isProblem ? members : MissingNode.getInstance(),
        null);
  }

  private static Duration retryAfter(HttpHeaders headers) {
    try {
      double seconds = Double.parseDouble(headers.firstValue("retry-after").orElse("0"));
      return Duration.ofMillis((long) (Math.max(seconds, 0) * 1_000));
    } catch (NumberFormatException date) { // the service sends none
      return Duration.ZERO;
    }
  }

  private static byte[] bytesOf(HttpRequest.BodyPublisher publisher) {
    BodySubscriber<byte[]> bytes = BodySubscribers.ofByteArray();
    publisher.subscribe(
        new Flow.Subscriber<>() {
          @Override
          public void onSubscribe(Flow.Subscription subscription) {
            bytes.onSubscribe(subscription);
          }

          @Override
          public void onNext(ByteBuffer part) {
            bytes.onNext(List.of(part));
          }

          @Override
          public void onError(Throwable error) {
            bytes.onError(error);
          }

          @Override
          public void onComplete() {
            bytes.onComplete();
          }
        });
    return bytes.getBody().toCompletableFuture().join();
  }

  /** A response that has arrived; its body is bytes or Events. */
  private record Received(int status, HttpHeaders headers, Object body, HttpResponse<?> response) {
    static Received nothing(HttpRequest request) {
      return new Received(204, HttpHeaders.of(Map.of(), (name, value) -> true), new byte[0], null);
    }

    @SuppressWarnings("unchecked")
    <T> HttpResponse<T> to(BodyHandler<T> handler, HttpRequest request) {
      if (body instanceof Events events) return new Answer<>(this, request, (T) events.value());
      BodySubscriber<T> subscriber = handler.apply(new Answer<>(this, request, null));
      subscriber.onSubscribe(new Ignored());
      byte[] bytes = (byte[]) body;
      if (bytes.length > 0) subscriber.onNext(List.of(ByteBuffer.wrap(bytes)));
      subscriber.onComplete();
      return new Answer<>(this, request, subscriber.getBody().toCompletableFuture().join());
    }
  }

  private static final class Ignored implements Flow.Subscription {
    @Override
    public void request(long count) {}

    @Override
    public void cancel() {}
  }

  private record Answer<T>(Received received, HttpRequest request, T body)
      implements HttpResponse<T>, HttpResponse.ResponseInfo {
    @Override
    public int statusCode() {
      return received.status();
    }

    @Override
    public HttpHeaders headers() {
      return received.headers();
    }

    @Override
    public Optional<HttpResponse<T>> previousResponse() {
      return Optional.empty();
    }

    @Override
    public Optional<SSLSession> sslSession() {
      return received.response() == null ? Optional.empty() : received.response().sslSession();
    }

    @Override
    public URI uri() {
      return request.uri();
    }

    @Override
    public Version version() {
      return Version.HTTP_1_1;
    }
  }

  @Override
  public <T> CompletableFuture<HttpResponse<T>> sendAsync(HttpRequest request, BodyHandler<T> handler) {
    return CompletableFuture.supplyAsync(
        () -> {
          try {
            return send(request, handler);
          } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            throw new Interrupted(error);
          }
        },
        client.executor());
  }

  @Override
  public <T> CompletableFuture<HttpResponse<T>> sendAsync(
      HttpRequest request, BodyHandler<T> handler, PushPromiseHandler<T> pushes) {
    return sendAsync(request, handler);
  }

  @Override
  public Optional<CookieHandler> cookieHandler() {
    return base.cookieHandler();
  }

  @Override
  public Optional<Duration> connectTimeout() {
    return base.connectTimeout();
  }

  @Override
  public Redirect followRedirects() {
    return base.followRedirects();
  }

  @Override
  public Optional<ProxySelector> proxy() {
    return base.proxy();
  }

  @Override
  public SSLContext sslContext() {
    return base.sslContext();
  }

  @Override
  public SSLParameters sslParameters() {
    return base.sslParameters();
  }

  @Override
  public Optional<Authenticator> authenticator() {
    return base.authenticator();
  }

  @Override
  public Version version() {
    return base.version();
  }

  @Override
  public Optional<Executor> executor() {
    return base.executor();
  }
}
