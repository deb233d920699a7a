package millstream;

import com.fasterxml.jackson.databind.JsonNode;
import java.net.http.HttpRequest;
import java.time.Duration;
import java.util.Optional;
import java.util.UUID;
import millstream.core.Repeats;

/**
 * Effect of a repeated request, and how long the service may wait before it responds.
 *
 * @param key the idempotency key to set
 */
record Effects(boolean mayRepeat, Duration patience, Optional<String> key) {
  static final String IDEMPOTENCY_KEY = "Idempotency-Key";
  private static final Duration RECEIVE_WAIT = Duration.ofSeconds(20); // the most that a queue may request

  static Effects of(HttpRequest request, byte[] body) {
    Repeats.Repeat repeat = repeatOf(request.method(), request.uri().getRawPath());
    return switch (repeat.kind()) {
      case "keyed" -> {
        boolean hasKey = request.headers().firstValue(IDEMPOTENCY_KEY).isPresent();
        yield new Effects(true, Duration.ZERO, hasKey ? Optional.empty() : Optional.of(randomKey()));
      }
      case "guarded" -> guarded(repeat, body);
      default -> new Effects(repeat.kind().equals("safe"), waitOf(request), Optional.empty());
    };
  }

  static String randomKey() {
    return UUID.randomUUID().toString().replace("-", "");
  }

  private static Effects guarded(Repeats.Repeat repeat, byte[] body) {
    JsonNode fields = Json.treeOrNothing(body == null ? new byte[0] : body);
    boolean mayRepeat =
        repeat.guards().stream().anyMatch(name -> fields.hasNonNull(name) && !fields.path(name).asText("x").isEmpty());
    Duration wait = repeat.path().endsWith("/receive") ? RECEIVE_WAIT : Duration.ZERO;
    return new Effects(mayRepeat, wait, Optional.empty());
  }

  private static Duration waitOf(HttpRequest request) {
    String query = request.uri().getRawQuery();
    if (query == null) return Duration.ZERO;
    for (String pair : query.split("&")) {
      if (pair.startsWith("wait_seconds=")) {
        return Duration.ofMillis((long) (Double.parseDouble(pair.substring(13)) * 1_000));
      }
    }
    return Duration.ZERO;
  }

  private static Repeats.Repeat repeatOf(String method, String path) {
    String[] words = path.substring(Math.max(path.indexOf("/v1/"), 0)).split("/", -1);
    return Repeats.ALL.stream()
        .filter(repeat -> repeat.method().equals(method) && fits(repeat.path().split("/", -1), words))
        .findFirst()
        .orElse(new Repeats.Repeat(method, path, "", java.util.List.of()));
  }

  private static boolean fits(String[] names, String[] words) {
    if (names.length != words.length) return false;
    for (int place = 0; place < names.length; place++) {
      if (!names[place].startsWith("{") && !names[place].equals(words[place])) return false;
    }
    return true;
  }
}
