"""LRU cache of blocks over all feeds of a process, bounded in bytes."""

from bisect import bisect_left, bisect_right
from collections import OrderedDict

from consumers.feeds.blocks import Block


class ShardBlocks:
    """The cached blocks of one shard, by their first offset."""

    __slots__ = ("blocks", "firsts")

    def __init__(self) -> None:
        self.firsts: list[int] = []
        self.blocks: list[Block] = []

    def find(self, offset: int) -> Block | None:
        """Return the block in which this offset lies."""
        number = bisect_right(self.firsts, offset) - 1
        if number < 0 or self.blocks[number].next <= offset:
            return None
        return self.blocks[number]

    def put(self, block: Block) -> Block | None:
        """Add a block; return the one that it replaces."""
        number = bisect_left(self.firsts, block.first)
        if number < len(self.firsts) and self.firsts[number] == block.first:
            before, self.blocks[number] = self.blocks[number], block
            return before
        self.firsts.insert(number, block.first)
        self.blocks.insert(number, block)
        return None

    def remove(self, block: Block) -> None:
        """Remove a block."""
        number = bisect_left(self.firsts, block.first)
        assert self.blocks[number] is block
        del self.firsts[number], self.blocks[number]


class BlockCache:
    """LRU cache of blocks."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._shard_blocks: OrderedDict[Block, ShardBlocks] = OrderedDict()
        self.size_bytes = 0

    def find(self, shard_blocks: ShardBlocks, offset: int) -> Block | None:
        """Return the block of a shard in which this offset lies."""
        block = shard_blocks.find(offset)
        if block is not None:
            self._shard_blocks.move_to_end(block)
        return block

    def keep(self, shard_blocks: ShardBlocks, block: Block) -> None:
        """Cache a block."""
        before = shard_blocks.put(block)
        if before is not None:
            self._release(before)
        self._shard_blocks[block] = shard_blocks
        self.size_bytes += block.size_bytes
        self._shrink()

    def resize(self, block: Block, count: int) -> None:
        """Add `count` bytes to the size of a block, after it was encoded."""
        if block in self._shard_blocks:
            self.size_bytes += count
            self._shrink()

    def drop_below(self, shard_blocks: ShardBlocks, offset: int) -> None:
        """Remove blocks before an offset, which are no longer readable."""
        while shard_blocks.blocks and shard_blocks.blocks[0].next <= offset:
            self._drop(shard_blocks, shard_blocks.blocks[0])

    def drop_all(self, shard_blocks: ShardBlocks) -> None:
        """Remove all blocks of a shard."""
        while shard_blocks.blocks:
            self._drop(shard_blocks, shard_blocks.blocks[-1])

    def _shrink(self) -> None:
        while self.size_bytes > self._bytes_max:
            block, shard_blocks = next(iter(self._shard_blocks.items()))
            self._drop(shard_blocks, block)

    def _drop(self, shard_blocks: ShardBlocks, block: Block) -> None:
        shard_blocks.remove(block)
        self._release(block)

    def _release(self, block: Block) -> None:
        del self._shard_blocks[block]
        self.size_bytes -= block.size_bytes
