package millstream;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.MissingNode;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/** The failure of a call. Each kind is a nested class. */
public class MillstreamException extends RuntimeException {
  private final Problem problem;

  MillstreamException(Problem problem) {
    super(problem.sentence(), problem.cause());
    this.problem = problem;
  }

  /** The HTTP status; 0 if the service did not respond. */
  public int status() {
    return problem.status();
  }

  /** The stable error code; empty if the service did not respond. */
  public String code() {
    return problem.code();
  }

  /** The id of the request in the service's log; empty if it did not respond. */
  public String requestId() {
    return problem.members().path("request_id").asText("");
  }

  /** Whether the same call may succeed later. */
  public boolean isRetryable() {
    return problem.isRetryable();
  }

  /** Whether the call may have taken effect. */
  public boolean isOutcomeUnknown() {
    return problem.isOutcomeUnknown();
  }

  /** Faults of the input. */
  public List<Fault> faults() {
    List<Fault> faults = new ArrayList<>();
    for (JsonNode fault : problem.members().path("errors")) {
      faults.add(
          new Fault(
              fault.path("pointer").asText(""), fault.path("detail").asText(""), fault.path("code").asText("")));
    }
    return faults;
  }

  Duration retryAfter() {
    return problem.retryAfter();
  }

  JsonNode members() {
    return problem.members();
  }

  /** A fault of the input: its location (a JSON Pointer), a description, and its code. */
  public record Fault(String pointer, String detail, String code) {}

  /** A setting that differs: its JSON Pointer, its current value, and the requested one. */
  public record Change(String pointer, JsonNode before, JsonNode after) {}

  static List<Change> changesOf(JsonNode members) {
    List<Change> changes = new ArrayList<>();
    for (JsonNode change : members.path("changes")) {
      changes.add(new Change(change.path("pointer").asText(), change.path("before"), change.path("after")));
    }
    return changes;
  }

  /** What an exception is made of; `members` are those of the problem that the service returned. */
  record Problem(
      int status,
      String code,
      String detail,
      boolean isRetryable,
      boolean isOutcomeUnknown,
      Duration retryAfter,
      JsonNode members,
      Throwable cause) {

    static Problem unanswered(String detail, boolean isRetryable, boolean isOutcomeUnknown, Throwable cause) {
      return new Problem(
          0, "", detail, isRetryable, isOutcomeUnknown, Duration.ZERO, MissingNode.getInstance(), cause);
    }

    String sentence() {
      StringBuilder places = new StringBuilder();
      for (JsonNode fault : members.path("errors")) {
        places.append(places.isEmpty() ? " [" : "; ");
        places.append(fault.path("pointer").asText()).append(": ").append(fault.path("detail").asText());
      }
      for (Change change : changesOf(members)) {
        places.append(places.isEmpty() ? " [" : "; ");
        places.append(change.pointer()).append(" is ").append(change.before()).append(", not ");
        places.append(change.after());
      }
      return detail + places + (places.isEmpty() ? "" : "]") + (code.isEmpty() ? "" : " (" + code + ")");
    }
  }

  /** Return the exception for a response outside 2xx. */
  static MillstreamException of(Problem problem) {
    int status = problem.status();
    if (status == 412 && problem.members().has("current")) return new AlreadyExists(problem);
    return switch (status) {
      case 400, 405, 413, 415, 422 -> new BadRequest(problem);
      case 401 -> new Unauthenticated(problem);
      case 403 -> new Forbidden(problem);
      case 404 -> new NotFound(problem);
      case 409 -> new Conflict(problem);
      case 410, 416 -> new Gone(problem);
      case 412 -> new PreconditionFailed(problem);
      case 429 -> new Limited(problem);
      case 503 -> new Unavailable(problem);
      default -> status >= 500 ? new ServerFailed(problem) : new MillstreamException(problem);
    };
  }

  /** The service is unreachable. Nothing happened. */
  public static class ConnectionFailed extends MillstreamException {
    ConnectionFailed(Problem problem) {
      super(problem);
    }
  }

  /** No connection was ever made: the service is not running, or has another URL. */
  public static final class NeverConnected extends ConnectionFailed {
    NeverConnected(Problem problem) {
      super(problem);
    }
  }

  /** No response, or one that does not show what happened: the call may have taken effect. */
  public static final class OutcomeUnknown extends MillstreamException {
    OutcomeUnknown(Problem problem) {
      super(problem);
    }
  }

  /** Something else answers at the URL. */
  public static final class NotMillstream extends MillstreamException {
    NotMillstream(Problem problem) {
      super(problem);
    }
  }

  /** The thread was interrupted; its interrupt flag is set again. */
  public static final class Interrupted extends MillstreamException {
    Interrupted(Throwable cause) {
      super(Problem.unanswered("The thread was interrupted", false, true, cause));
    }
  }

  /** The request is invalid. */
  public static final class BadRequest extends MillstreamException {
    BadRequest(Problem problem) {
      super(problem);
    }
  }

  /** The credential is missing or invalid. */
  public static final class Unauthenticated extends MillstreamException {
    Unauthenticated(Problem problem) {
      super(problem);
    }
  }

  /** The credential does not have the required permission. */
  public static final class Forbidden extends MillstreamException {
    Forbidden(Problem problem) {
      super(problem);
    }
  }

  /** The resource does not exist. */
  public static final class NotFound extends MillstreamException {
    NotFound(Problem problem) {
      super(problem);
    }
  }

  /** The state of the resource does not allow the call. */
  public static class Conflict extends MillstreamException {
    Conflict(Problem problem) {
      super(problem);
    }
  }

  /** The object to create exists with other settings. */
  public static final class AlreadyExists extends Conflict {
    AlreadyExists(Problem problem) {
      super(problem);
    }

    @Override
    public String code() {
      return "already_exists";
    }

    /** The settings that differ. */
    public List<Change> changes() {
      return changesOf(members());
    }
  }

  /** The offset has expired, or does not exist yet. */
  public static final class Gone extends MillstreamException {
    Gone(Problem problem) {
      super(problem);
    }
  }

  /** A precondition of the call does not hold. */
  public static final class PreconditionFailed extends MillstreamException {
    PreconditionFailed(Problem problem) {
      super(problem);
    }
  }

  /** A limit is exceeded. */
  public static final class Limited extends MillstreamException {
    Limited(Problem problem) {
      super(problem);
    }
  }

  /** The service failed. */
  public static class ServerFailed extends MillstreamException {
    ServerFailed(Problem problem) {
      super(problem);
    }
  }

  /** The service or one of its stores is unavailable. */
  public static final class Unavailable extends ServerFailed {
    Unavailable(Problem problem) {
      super(problem);
    }
  }

  /** Items of a batch were rejected; the list has the rejection of each, or null. */
  public static final class ItemsRejected extends MillstreamException {
    private final transient List<ItemError> errors;

    ItemsRejected(List<ItemError> errors) {
      super(problemOf(errors));
      this.errors = errors;
    }

    /** The rejection of each item, or null for an accepted one. */
    public List<ItemError> errors() {
      return errors;
    }

    private static Problem problemOf(List<ItemError> errors) {
      List<ItemError> rejected = errors.stream().filter(error -> error != null).toList();
      ItemError first = rejected.get(0);
      String detail = rejected.size() + " of " + errors.size() + " items were rejected; the first: " + first.detail();
      boolean isRetryable = rejected.stream().allMatch(ItemError::retryable);
      return new Problem(
          200, first.code(), detail, isRetryable, false, Duration.ZERO, MissingNode.getInstance(), null);
    }
  }

  /** The rejection of one item of a batch. */
  public record ItemError(String code, String detail, boolean retryable) {}
}
