package millstream;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.List;
import java.util.function.ToIntBiFunction;

/** Items in as few calls as the limits allow. */
final class Batches {
  private Batches() {}

  /** Encode items, which `encode` writes and measures. */
  static <T> List<ArrayNode> of(List<T> items, ToIntBiFunction<T, ObjectNode> encode) {
    List<ArrayNode> batches = new ArrayList<>();
    ArrayNode batch = Json.MAPPER.createArrayNode();
    long total = 0;
    for (T item : items) {
      ObjectNode encoded = Json.MAPPER.createObjectNode();
      int size = encode.applyAsInt(item, encoded);
      if (!batch.isEmpty() && (batch.size() == Json.ITEMS_MAX || total + size > Json.BYTES_MAX)) {
        batches.add(batch);
        batch = Json.MAPPER.createArrayNode();
        total = 0;
      }
      batch.add(encoded);
      total += size;
    }
    if (!batch.isEmpty()) batches.add(batch);
    return batches;
  }
}
