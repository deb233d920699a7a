package millstream;

import com.fasterxml.jackson.annotation.JsonInclude;
import com.fasterxml.jackson.annotation.JsonProperty;
import java.time.Duration;

/** Settlement of one delivery, in its form on the wire. */
@JsonInclude(JsonInclude.Include.NON_NULL)
record Settlement(
    @JsonProperty("receipt_handle") String receiptHandle,
    String action,
    @JsonProperty("delay_seconds") Double delaySeconds,
    @JsonProperty("visibility_timeout_seconds") Double visibilityTimeoutSeconds,
    String reason,
    String details) {
  private static final int REASON_MAX = 1_024;
  private static final int DETAILS_MAX = 4_096;

  static Settlement of(Message message, String action) {
    return new Settlement(message.receiptHandle(), action, null, null, "", "");
  }

  static Settlement extension(Message message, Duration timeout) {
    return new Settlement(message.receiptHandle(), "extend", null, NewMessage.seconds(timeout), "", "");
  }

  Settlement delay(Duration delay) {
    double seconds = NewMessage.seconds(delay);
    return new Settlement(receiptHandle, action, seconds, visibilityTimeoutSeconds, reason, details);
  }

  Settlement reason(String text, String more) {
    return new Settlement(
        receiptHandle, action, delaySeconds, visibilityTimeoutSeconds, start(text, REASON_MAX), start(more, DETAILS_MAX));
  }

  private static String start(String text, int charactersMax) {
    if (text == null) return "";
    return text.length() <= charactersMax ? text : text.substring(0, charactersMax);
  }
}
