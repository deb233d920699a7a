package millstream;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.List;

/**
 * The settings of a queue, stream or group.
 *
 * @param created whether the call created the object
 * @param changes the settings that differed before
 * @param settings all settings, by the names of the REST API
 */
public record Stored(boolean created, List<MillstreamException.Change> changes, JsonNode settings) {
  static Stored of(JsonNode stored) {
    return new Stored(stored.path("created").asBoolean(), MillstreamException.changesOf(stored), stored);
  }
}
