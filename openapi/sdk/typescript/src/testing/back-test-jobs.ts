/** Back-tests of the in-memory service that run as jobs. */

import { randomKey } from '../transport/effects.js';
import { type Clock, type Fields, isEqual, moment } from './definitions.js';
import { MemoryProblem } from './problems.js';
import { type BackTest, backTestOf, evaluate, unevaluated } from './topics/back-tests.js';
import type { RoutedLog } from './topics/routed-log.js';

const ATTEMPTS_MAX = 10;

/** A back-test that runs as a job. It is evaluated when it is first shown. */
interface BackTestJob {
  id: string;
  test: BackTest;
  createdAt: number;
  result: Fields;
  state: 'queued' | 'done' | 'failed' | 'cancelled';
  attempt: number;
  failure: string;
  startedAt?: number;
  endedAt?: number;
}

/** Back-tests that run as jobs. A topic has one open job, until that is shown. */
export class BackTestJobs {
  readonly #now: Clock;
  readonly #topicOf: (name: string) => RoutedLog;
  readonly #jobs = new Map<string, BackTestJob>();

  constructor(now: Clock, topicOf: (name: string) => RoutedLog) {
    this.#now = now;
    this.#topicOf = topicOf;
  }

  /** Start a job, or show the open one of the same back-test. Throws MemoryProblem. */
  start(topic: RoutedLog, fields: Fields): Fields {
    const test = backTestOf(topic, fields);
    const open = this.#open(topic.name);
    if (open !== undefined) {
      if (isSame(open.test, test)) return shown(open);
      const detail = `Job ${open.id}, another back-test of this topic, is still open.`;
      throw new MemoryProblem('job_refused', detail, { reason: 'open', job_id: open.id });
    }
    const times = { createdAt: this.#now(), attempt: 0 };
    const job: BackTestJob = { id: randomKey(), test, ...times, result: unevaluated(test), state: 'queued', failure: '' };
    this.#jobs.set(job.id, job);
    return shown(job);
  }

  /** Show a job of a topic, which is evaluated now. Throws MemoryProblem. */
  ofTopic(topic: string, id: string): Fields {
    if (this.#find(id).test.topic !== topic) throw notFound();
    return shown(this.#evaluated(id));
  }

  /** Show a job, which is evaluated now, as those of every kind. Throws MemoryProblem. */
  get(id: string): Fields {
    return { ...shownAsJob(this.#evaluated(id)), parts: [] };
  }

  /** Cancel a job that was not shown yet. Throws MemoryProblem. */
  cancel(id: string): Fields {
    const job = this.#find(id);
    if (job.state === 'done' || job.state === 'failed') throw notPossible('cancelled', job);
    if (job.state === 'queued') Object.assign(job, { state: 'cancelled', endedAt: this.#now() });
    return shownAsJob(job);
  }

  /** Retry a failed job. Throws MemoryProblem. */
  retry(id: string): Fields {
    const job = this.#find(id);
    if (job.state !== 'failed') throw notPossible('retried', job);
    if (this.#open(job.test.topic) !== undefined)
      throw new MemoryProblem('job_refused', 'Another job of this type and subject is open.', { reason: 'open' });
    Object.assign(job, { state: 'queued', failure: '', endedAt: undefined });
    return shownAsJob(job);
  }

  #evaluated(id: string): BackTestJob {
    const job = this.#find(id);
    if (job.state !== 'queued') return job;
    job.attempt += 1;
    job.startedAt ??= this.#now();
    try {
      job.result = evaluate(job.test, this.#topicOfTest(job.test));
      job.state = 'done';
    } catch (error) {
      if (!(error instanceof MemoryProblem)) throw error;
      Object.assign(job, { state: 'failed', failure: error.message });
    }
    job.endedAt = this.#now();
    return job;
  }

  #topicOfTest({ topic: name, logId }: BackTest): RoutedLog {
    const topic = this.#topicOf(name);
    if (topic.log.id === logId) return topic;
    const detail = 'The position belongs to a deleted stream; another stream has its name now.';
    throw new MemoryProblem('stream_recreated', detail);
  }

  #find(id: string): BackTestJob {
    const job = this.#jobs.get(id);
    if (job === undefined) throw notFound();
    return job;
  }

  #open(topic: string): BackTestJob | undefined {
    return [...this.#jobs.values()].find(({ test, state }) => test.topic === topic && state === 'queued');
  }
}

function isSame({ messages: _, ...one }: BackTest, { messages: __, ...other }: BackTest): boolean {
  return isEqual(one, other);
}

/** Return a job as a back-test. */
function shown(job: BackTestJob): Fields {
  const { topic, match, compareWith: compare_with, startTime, endTime, messages } = job.test;
  const time = (text: string | null) => (text === null ? null : moment(Date.parse(text)));
  return {
    ...statusOf(job),
    ...{ topic, match, compare_with, start_time: time(startTime), end_time: time(endTime) },
    ...{ messages: messages.length, result: job.result },
  };
}

/** Return a job as those of every kind are shown. */
function shownAsJob(job: BackTestJob): Fields {
  return {
    ...statusOf(job),
    ...{ kind: 'backtest', subject: job.test.topic },
    ...{ failures: job.state === 'failed' ? 1 : 0, attempts_max: ATTEMPTS_MAX },
    progress: { ...job.result, messages: job.test.messages.length },
    run_after: moment(job.createdAt),
  };
}

function statusOf({ id, state, attempt, failure, createdAt, startedAt, endedAt }: BackTestJob): Fields {
  const time = (at: number | undefined) => (at === undefined ? null : moment(at));
  return {
    ...{ id, state, requested_state: 'none', waiting_for: null, attempt, failure },
    ...{ created_at: moment(createdAt), started_at: time(startedAt), ended_at: time(endedAt) },
  };
}

function notFound(): MemoryProblem {
  return new MemoryProblem('job_not_found', 'The job does not exist.');
}

function notPossible(action: string, { state }: BackTestJob): MemoryProblem {
  return new MemoryProblem('job_refused', `The job cannot be ${action} because it is ${state}.`, { reason: state });
}
