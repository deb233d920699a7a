package millstream;

import java.time.Duration;
import java.util.concurrent.ThreadLocalRandom;
import millstream.MillstreamException.ConnectionFailed;
import millstream.MillstreamException.NeverConnected;
import millstream.MillstreamException.OutcomeUnknown;
import millstream.MillstreamException.Problem;

/**
 * Retry decisions for one logical call.
 *
 * <pre>
 * rejected, retryable                retry, after Retry-After or a delay
 * never sent                         retry
 * no response, or outcome unknown    retry only if a repeat has no further effect
 * anything else                      throw
 * </pre>
 */
final class Attempts {
  private static final Duration UNREACHED_PAUSE = Duration.ofMillis(500);
  private static final int WARN_AFTER = 2;
  private static final long WARN_EVERY_NS = Duration.ofMinutes(1).toNanos();
  private static final System.Logger LOG = System.getLogger("millstream");

  /** State of the connection to a service, shared by all calls of a client. */
  static final class Reachability {
    volatile boolean isEstablished;
    private long warnedAt = System.nanoTime() - WARN_EVERY_NS;

    synchronized void warn(MillstreamException failure, int failures, Duration limit) {
      if (failures < WARN_AFTER || System.nanoTime() - warnedAt < WARN_EVERY_NS) return;
      warnedAt = System.nanoTime();
      LOG.log(System.Logger.Level.WARNING, "{0}; retrying for up to {1} s", failure.getMessage(), limit.toSeconds());
    }
  }

  private final Retries retries;
  private final Reachability service;
  private final boolean mayRepeat;
  private final boolean isRead;
  private final long startedAt = System.nanoTime();
  private long failedAt;
  private int failures;
  private boolean mayHaveHappened;

  Attempts(Retries retries, Reachability service, boolean mayRepeat, boolean isRead) {
    this.retries = retries;
    this.service = service;
    this.mayRepeat = mayRepeat;
    this.isRead = isRead;
  }

  boolean mayHaveHappened() {
    return mayHaveHappened;
  }

  /** Return the time until the next attempt. Throws the failure if there is none. */
  Duration pauseAfter(MillstreamException failure) {
    long now = System.nanoTime();
    if (failures == 0) failedAt = now;
    mayHaveHappened |= failure.isOutcomeUnknown();
    if (!failure.isRetryable() || (failure.isOutcomeUnknown() && !mayRepeat)) throw last(failure);
    boolean isUnreached = isUnreached(failure);
    Duration limit = isUnreached ? shorter(retries.limit(), retries.firstContact()) : retries.limit();
    Duration pause = failure.retryAfter().plus(backoff(isUnreached));
    failures++;
    long since = isUnreached ? startedAt : failedAt;
    if (now - since + pause.toNanos() > limit.toNanos()) throw last(failure);
    service.warn(failure, failures, limit);
    return pause;
  }

  private Duration backoff(boolean isUnreached) {
    Duration longest = isUnreached ? shorter(retries.longestPause(), UNREACHED_PAUSE) : retries.longestPause();
    Duration bound = shorter(longest, retries.firstPause().multipliedBy(1L << Math.min(failures, 16)));
    return Duration.ofNanos((long) (ThreadLocalRandom.current().nextDouble() * bound.toNanos()));
  }

  private static Duration shorter(Duration one, Duration other) {
    return one.compareTo(other) < 0 ? one : other;
  }

  private boolean isUnreached(MillstreamException failure) {
    return !service.isEstablished && failure instanceof ConnectionFailed;
  }

  /** Return the final exception: a rejection now does not show what an earlier attempt did. */
  private MillstreamException last(MillstreamException failure) {
    if (mayHaveHappened && !failure.isOutcomeUnknown() && !isRead) {
      String detail = "An earlier attempt may have happened; the last one: " + failure.getMessage();
      return new OutcomeUnknown(Problem.unanswered(detail, true, true, failure));
    }
    if (!isUnreached(failure) || !failure.isRetryable()) return failure;
    String hint = failure.getMessage() + ". Is the service running? Start one with `millstream up`.";
    return new NeverConnected(Problem.unanswered(hint, false, false, failure));
  }
}
