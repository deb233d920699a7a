/** Operations on a queue as a whole: configuration, inspection, dead letters, moves and groups. */

import {
  browseMessages,
  changeMove,
  changeQueue,
  deleteMessage,
  deleteQueue,
  getMessage,
  getMove,
  getQueue,
  getQueueStats,
  listDeadLetters,
  listDeathReasons,
  listMoves,
  listParkedGroups,
  listQueueConsumers,
  pauseGroup,
  pauseQueue,
  purgeQueue,
  putQueue,
  redriveQueue,
  resumeGroup,
  resumeQueue,
  startMove,
} from '../generated/sdk.gen.js';
import type {
  BrowsedMessageOut,
  DeadLetterOut,
  DeathReasonOut,
  MessageState,
  MoveConfig,
  MoveOut,
  ParkedGroupOut,
  QueueConsumerOut,
  QueueConfig,
  QueueOut,
  QueuePatch,
  QueueStatsOut,
  QueueStored,
  RedriveConfig,
  Redriven,
} from '../generated/types.gen.js';
import type { Transport } from '../transport/transport.js';
import { type ApplyOptions, CREATE, type CreateOptions, created } from './definitions.js';
import { type MessageFilter, queryOf } from './filters.js';
import { allPages } from './pages.js';

/** Operations of a queue other than sending and receiving. Throws MillstreamError. */
export class QueueOperations {
  readonly name: string;
  protected readonly transport: Transport;

  constructor(transport: Transport, name: string) {
    this.transport = transport;
    this.name = name;
  }

  protected get at() {
    return { client: this.transport.client, path: { queue: this.name } };
  }

  // ── Configuration ──

  /**
   * Create the queue. If it exists with these settings, return it, with `created` false.
   *
   * Settings that you leave out are not compared. Throws AlreadyExists, which names the settings that differ.
   */
  create(config: QueueConfig = {}, options: CreateOptions = {}): Promise<QueueStored> {
    return created(putQueue({ ...this.at, body: config, headers: CREATE }), options);
  }

  /** Create the queue, or replace its configuration: settings that you leave out take their defaults. */
  async apply(config: QueueConfig = {}, { dryRun }: ApplyOptions = {}): Promise<QueueStored> {
    return (await putQueue({ ...this.at, body: config, query: { dry_run: dryRun } })).data;
  }

  /** Return the configuration. */
  async config(): Promise<QueueOut> {
    return (await getQueue(this.at)).data;
  }

  /** Change fields of the configuration; null resets a field to its default. */
  async change(patch: QueuePatch): Promise<QueueOut> {
    return (await changeQueue({ ...this.at, body: patch })).data;
  }

  /** Pause delivery: the queue accepts messages and delivers none until it is resumed. */
  async pause(): Promise<QueueOut> {
    return (await pauseQueue(this.at)).data;
  }

  /** Resume delivery. */
  async resume(): Promise<QueueOut> {
    return (await resumeQueue(this.at)).data;
  }

  /** Delete the queue and its messages. */
  async delete(): Promise<void> {
    await deleteQueue(this.at);
  }

  // ── Inspection ──

  /** Return exact message counts by state. */
  async stats(): Promise<QueueStatsOut> {
    return (await getQueueStats(this.at)).data;
  }

  /** Return the consumers of the last five minutes, most messages first. */
  async consumers(): Promise<QueueConsumerOut[]> {
    return (await listQueueConsumers(this.at)).data.items;
  }

  /** List messages without receiving them: all, or those in a state that meet the conditions. */
  browse(state?: MessageState, conditions: MessageFilter = {}): AsyncGenerator<BrowsedMessageOut, void, void> {
    return allPages((cursor) => browseMessages({ ...this.at, query: { ...queryOf(conditions), state, cursor } }));
  }

  /** Return one message or dead letter by id or offset. */
  async message(id: string | number): Promise<BrowsedMessageOut | DeadLetterOut> {
    return (await getMessage({ ...this.at, path: { queue: this.name, message: String(id) } })).data;
  }

  /** Delete one message by id or offset, in any state. */
  async deleteMessage(id: string | number): Promise<void> {
    await deleteMessage({ ...this.at, path: { queue: this.name, message: String(id) } });
  }

  /** Delete all messages, including those in flight; return their number. Dead letters are kept. */
  async purge(): Promise<number> {
    return (await purgeQueue(this.at)).data.purged;
  }

  // ── Dead letters ──

  /** List the dead letters, oldest first: all, or those with a reason that meet the conditions. */
  deadLetters(reason?: string, conditions: MessageFilter = {}): AsyncGenerator<DeadLetterOut, void, void> {
    return allPages((cursor) => listDeadLetters({ ...this.at, query: { ...queryOf(conditions), reason, cursor } }));
  }

  /** Count the dead letters by reason. */
  async deathReasons(): Promise<DeathReasonOut[]> {
    return (await listDeathReasons(this.at)).data.items;
  }

  /** Redrive dead letters: all, or those of a `reason`, a `group`, or `messages`; with `per_second`, in the background. */
  async redrive(which: RedriveConfig = {}): Promise<Redriven | MoveOut> {
    return (await redriveQueue({ ...this.at, body: which })).data;
  }

  /** Start moving messages of a dead-letter queue to their source queues, or to another one. */
  async move(config: MoveConfig = {}): Promise<MoveOut> {
    return (await startMove({ ...this.at, body: config })).data;
  }

  /** List the moves from the queue, newest first. */
  async moves(): Promise<MoveOut[]> {
    return (await listMoves(this.at)).data.items;
  }

  /** Return the progress of a move. */
  async moveStatus(move: string): Promise<MoveOut> {
    return (await getMove({ ...this.at, path: { queue: this.name, move } })).data;
  }

  /** Cancel a move. */
  async cancelMove(move: string): Promise<MoveOut> {
    return (await changeMove({ ...this.at, path: { queue: this.name, move }, body: { state: 'cancelled' } })).data;
  }

  // ── Groups ──

  /** List the parked groups. They are not delivered until resumed. */
  parkedGroups(): AsyncGenerator<ParkedGroupOut, void, void> {
    return allPages((cursor) => listParkedGroups({ ...this.at, query: { cursor } }));
  }

  /** Pause delivery of a group until it is resumed. */
  async pauseGroup(group: string, reason = 'paused'): Promise<void> {
    await pauseGroup({ ...this.at, path: { queue: this.name, group }, body: { reason } });
  }

  /** Resume delivery of a parked group; return the number of its messages that were parked. */
  async resumeGroup(group: string): Promise<number> {
    return (await resumeGroup({ ...this.at, path: { queue: this.name, group } })).data.resumed;
  }
}
