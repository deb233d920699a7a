package millstream;

import java.time.Duration;

/**
 * Time limits and speed of retries.
 *
 * @param limit counts from the first failure; zero: one attempt
 * @param firstContact limits a client that has never reached the service
 * @param firstPause first and shortest bound of the exponential backoff, which has full jitter
 * @param longestPause longest bound of the backoff
 */
public record Retries(Duration limit, Duration firstContact, Duration firstPause, Duration longestPause) {
  /** A minute, and five seconds if the service was never reached. */
  public static final Retries DEFAULT =
      new Retries(Duration.ofMinutes(1), Duration.ofSeconds(5), Duration.ofMillis(100), Duration.ofSeconds(5));
}
