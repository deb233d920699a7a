/** Many items in as few calls as the limits allow. */

export const ITEMS_MAX = 1_000; // of one call
const BYTES_MAX = 5 * 2 ** 20; // of bodies in one call, which may have 16 MiB: escapes can make text larger

/** Yield the items in order, in batches that fit into a call; a too large item is alone. */
export function* batches<Item>(items: Iterable<Item>, sizeOf: (item: Item) => number): Generator<Item[]> {
  let batch: Item[] = [];
  let size = 0;
  for (const item of items) {
    const more = sizeOf(item);
    if (batch.length > 0 && (batch.length === ITEMS_MAX || size + more > BYTES_MAX)) {
      yield batch;
      batch = [];
      size = 0;
    }
    batch.push(item);
    size += more;
  }
  if (batch.length > 0) yield batch;
}
