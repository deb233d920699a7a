/** Lists that arrive in pages. */

export const PAGE = 1000;

interface Page<Item> {
  items: Item[];
  next_cursor?: string | null;
}

/** Yield the items of all pages. */
export async function* allPages<Item>(
  read: (cursor: string | undefined) => Promise<{ data: Page<Item> }>,
): AsyncGenerator<Item, void, void> {
  let cursor: string | undefined;
  do {
    const { data } = await read(cursor);
    yield* data.items;
    cursor = data.next_cursor ?? '';
  } while (cursor !== '');
}
