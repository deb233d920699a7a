package millstream;

/** Thrown by a handler for a permanent failure: its message becomes a dead letter with the reason. */
public class RejectException extends Exception {
  /** Reject the message because of a cause, whose stack trace the dead letter shows. */
  public RejectException(String reason, Throwable cause) {
    super(reason, cause);
  }

  /** Reject the message. */
  public RejectException(String reason) {
    this(reason, null);
  }
}
