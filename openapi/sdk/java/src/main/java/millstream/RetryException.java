package millstream;

import java.time.Duration;

/** Thrown by a handler to have its message retried after a delay. */
public class RetryException extends Exception {
  private final Duration delay;

  /** Retry after a delay, because of a cause. */
  public RetryException(Duration delay, String reason, Throwable cause) {
    super(reason, cause);
    this.delay = delay;
  }

  /** Retry after a delay. */
  public RetryException(Duration delay, String reason) {
    this(delay, reason, null);
  }

  Duration delay() {
    return delay;
  }
}
