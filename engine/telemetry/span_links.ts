/**
 * What recorded calls refer to and share: functions and workers.
 *
 * @module
 */
import type { ObservedFunction } from "../ports/call_observer.ts";
import type { CallParty } from "../ports/telemetry.ts";
import type { CountingMeter } from "./function_meter.ts";
import { costOf } from "./kept_text.ts";
import type { SpanDetail } from "./span_detail.ts";

/** A worker that calls or runs, as spans refer to it. */
export class Party implements CallParty {
  readonly worker_id: string;
  /** Empty: the first part of the function's id stands for it. */
  readonly name: string;
  /** Number of the page that last came to hold it, and its place there. */
  page = -1;
  place = 0;

  /** Makes one. */
  constructor(worker_id: string, name: string) {
    this.worker_id = worker_id;
    this.name = name;
  }

  /** What it costs to keep it. */
  get bytes(): number {
    return 64 + costOf(this.worker_id) + costOf(this.name);
  }
}

/** A function, as spans refer to it. */
export class Subject implements ObservedFunction {
  readonly function_id: string;
  readonly namespace: string;
  readonly meter: CountingMeter;
  /** See {@linkcode Party.page}. */
  page = -1;
  place = 0;
  /** Part of the traces to record that begin with it, as of this version of the settings. */
  rate = 0;
  rateVersion = -1;

  /** Makes one. */
  constructor(namespace: string, function_id: string, meter: CountingMeter) {
    this.namespace = namespace;
    this.function_id = function_id;
    this.meter = meter;
  }

  /** What it costs to keep it. */
  get bytes(): number {
    return 64 + costOf(this.function_id) + costOf(this.namespace);
  }
}

/** What a span refers to. */
export interface SpanLinks {
  readonly subject: Subject;
  readonly caller: Party;
  readonly callee: Party | undefined;
  readonly detail: SpanDetail | undefined;
}
