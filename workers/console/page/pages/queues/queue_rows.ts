/**
 * Queues as `engine-queue` lists them, and what they do per second, computed from their totals.
 *
 * @module
 */
import { useRef } from "preact/hooks";
import type { Json } from "../../../../../sdk/typescript/wire/protocol.ts";
import { SampleWindow } from "../metrics/samples.ts";
import { type Sampled, useSampled } from "../metrics/use_sampled.ts";

/** Samples of each queue: 5 minutes. */
const SAMPLES = 300;

/** A queue of `engine::queue::list`. */
export interface QueueRow {
  readonly name: string;
  /** Of the queue of a topic's subscriber. */
  readonly topic?: string;
  readonly function_id?: string;
  readonly waiting: number;
  readonly running: number;
  readonly delayed: number;
  readonly dead: number;
  /** The numbers above are too small. */
  readonly is_counting: boolean;
  readonly enqueued_total: number;
  readonly done_total: number;
  readonly failed_total: number;
  readonly oldest_age_ms: number | null;
  readonly paused: boolean;
  readonly config: { readonly [name: string]: Json };
}

/** A job that runs, from `engine::queue::stats`. */
export interface RunningJob {
  readonly id: string;
  readonly function_id: string;
  readonly attempt: number;
  readonly enqueued_at_ms: number;
  readonly trace_id?: string;
}

/** A job of `engine::queue::peek`. */
export interface WaitingRow {
  readonly id: string;
  readonly state: "waiting" | "running" | "delayed";
  readonly function_id: string;
  /** Only operators' pages get it. */
  readonly payload?: Json;
  readonly attempts: number;
  readonly enqueued_at_ms: number;
  readonly due_at_ms?: number;
  readonly error?: string;
  readonly trace_id?: string;
}

/** A dead letter of `engine::queue::dlq_messages`. */
export interface DeadRow {
  readonly id: string;
  readonly function_id: string;
  /** Only operators' pages get it. */
  readonly payload?: Json;
  readonly error: string;
  /** The last attempts, the oldest first. */
  readonly failures: readonly {
    readonly at_ms: number;
    readonly code: string;
    readonly message: string;
    readonly stacktrace?: string;
  }[];
  /** Seconds since 1970. */
  readonly failed_at: number;
  readonly retries: number;
  readonly trace_id?: string;
}

/** What is charted of a queue. */
export type QueueField = "in_per_s" | "done_per_s" | "failed_per_s" | "waiting" | "running";

const NOTHING = {
  in_per_s: null,
  done_per_s: null,
  failed_per_s: null,
  waiting: null,
  running: null,
};

/** Samples of all queues, made from one listing after the other. */
export class QueueSamples {
  readonly window = new SampleWindow<QueueField>(SAMPLES, NOTHING);
  #rows = new Map<string, QueueRow>();
  #at_ms = 0;

  /** Adds a listing. */
  add(at_ms: number, rows: readonly QueueRow[]): void {
    const seconds = (at_ms - this.#at_ms) / 1_000;
    if (seconds <= 0) return;
    this.window.add(
      at_ms,
      rows.map((row) => {
        const { waiting, running } = row;
        return [row.name, { waiting, running, ...ratesOf(this.#rows.get(row.name), row, seconds) }];
      }),
    );
    this.#rows = new Map(rows.map((row) => [row.name, row]));
    this.#at_ms = at_ms;
  }
}

/** Nothing for a queue that is new, or whose totals began anew with its engine. */
function ratesOf(
  before: QueueRow | undefined,
  now: QueueRow,
  seconds: number,
): Partial<Record<QueueField, number>> {
  if (before === undefined) return {};
  const came = now.enqueued_total - before.enqueued_total;
  const done = now.done_total - before.done_total;
  const failed = now.failed_total - before.failed_total;
  if (came < 0 || done < 0 || failed < 0) return {};
  return {
    in_per_s: came / seconds,
    done_per_s: done / seconds,
    failed_per_s: failed / seconds,
  };
}

/** Title of a queue; that of a subscriber is named by its topic and function. */
export function titleOf({ name, topic, function_id }: QueueRow): string {
  return topic === undefined ? name : `${topic} → ${function_id ?? ""}`;
}

/** Whether every word of a search occurs in the title. */
export function matchesSearch(row: QueueRow, search: string): boolean {
  const text = `${row.name} ${titleOf(row)}`.toLowerCase();
  return search.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}

/** All queues, and their samples, which are changed in place. */
export interface QueuesState extends Pick<Sampled<unknown>, "status" | "error" | "refresh"> {
  readonly rows: readonly QueueRow[];
  readonly samples: QueueSamples;
  /** Increases with every sample. */
  readonly version: number;
}

/** Lists the queues once a second while a component is mounted and their worker runs. */
export function useQueues(): QueuesState {
  const samples = useRef<QueueSamples>();
  samples.current ??= new QueueSamples();
  const { answer, ...asked } = useSampled<{ readonly queues: readonly QueueRow[] }>(
    "engine::queue::list",
    ({ queues }, at_ms) => samples.current!.add(at_ms, queues),
  );
  const rows = asked.status === "absent" ? NO_ROWS : answer?.queues ?? NO_ROWS;
  return { ...asked, samples: samples.current, rows };
}

const NO_ROWS: readonly QueueRow[] = [];
