package millstream;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.function.Consumer;

/**
 * A range of offsets that are no longer available, or were never used: {@code expired} by retention; {@code failover},
 * without a record that was acknowledged; or a {@code hole}, whose records, if there were any, are lost.
 */
public record Gap(int shard, long first, long next, String reason) {
  private static final System.Logger LOG = System.getLogger("millstream");

  static final Consumer<Gap> WARN =
      gap ->
          LOG.log(
              System.Logger.Level.WARNING,
              "offsets {0} to {1} of shard {2} are gone: {3}",
              gap.first(), gap.next() - 1, gap.shard(), gap.reason());

  static void report(JsonNode gaps, Consumer<Gap> onGap) {
    for (JsonNode gap : gaps) {
      onGap.accept(
          new Gap(
              gap.path("shard").asInt(), gap.path("first").asLong(), gap.path("next").asLong(),
              gap.path("reason").asText()));
    }
  }
}
