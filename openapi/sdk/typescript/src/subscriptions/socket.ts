/** Subscription over a WebSocket, which survives lost connections. */

import type { Message, OnGap, Settling, StreamRecord } from '../deliveries.js';
import type { ItemRefused } from '../errors.js';
import type { SettlementIn } from '../generated/types.gen.js';
import type { Transport } from '../transport/transport.js';
import { Connection } from './connection.js';
import { type Arrived, type Ask, Conversation } from './conversation.js';
import type { Channel } from './subscription.js';

/** Deliveries of a subscription over one WebSocket after another. */
export class SocketChannel<Item extends Message | StreamRecord> implements Channel<Item>, Settling {
  readonly #connection: Connection<Conversation>;
  readonly #onGap: OnGap;

  constructor(transport: Transport, prepare: () => Promise<Ask>, onGap: OnGap = () => undefined) {
    const begin = async () => new Conversation(await prepare(), this);
    this.#connection = new Connection(transport, begin, 'subscription', true);
    this.#onGap = onGap;
  }

  open(): Promise<void> {
    return this.#connection.open();
  }

  close(): Promise<void> {
    return this.#connection.close();
  }

  async next(): Promise<Item | undefined> {
    if (this.#connection.isClosing) return undefined;
    if (this.#connection.session === undefined) await this.open();
    const talk = this.#talking();
    this.#connection.say(talk.done());
    for (;;) {
      try {
        await this.#connection.until(() => talk.arrived.length > 0);
      } catch (error) {
        if (this.#connection.isClosing) return undefined;
        throw error;
      }
      const taken = talk.take();
      if (taken === undefined) continue;
      this.#connection.say(taken.said);
      if (isGap(taken.arrived)) this.#onGap(taken.arrived.item);
      else return taken.arrived.item as Item;
    }
  }

  async settle(settlement: SettlementIn): Promise<ItemRefused | undefined> {
    const { said, taken } = this.#talking().settle(settlement);
    this.#connection.say(said);
    return await taken;
  }

  async commit(record: StreamRecord): Promise<void> {
    const { said, taken } = this.#talking().commit(record.shard, record.offset + 1);
    this.#connection.say(said);
    await taken;
  }

  #talking(): Conversation {
    const { session, failure, isClosing } = this.#connection;
    if (session === undefined) throw new Error('The subscription is not open.');
    if (failure !== undefined && session.arrived.length === 0 && !isClosing) throw failure;
    return session;
  }
}

function isGap(arrived: Arrived): arrived is Extract<Arrived, { kind: 'gap' }> {
  return arrived.kind === 'gap';
}
