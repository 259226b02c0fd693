/**
 * Records that wait to be sent: bounded, oldest first, taken out by the frame.
 *
 * What does not fit is counted, so that whoever reads the logs learns that some are missing.
 *
 * @module
 */
import { TELEMETRY_FRAME_CHARS_MAX, TELEMETRY_QUEUE_CHARS_MAX } from "./wire/limits.ts";

/** Records of one service that leave together. */
export interface RecordGroup {
  readonly service: string;
  readonly records: string[];
}

/** The records of one signal. */
export class TelemetryQueue {
  readonly #charsMax: number;
  #waiting: { readonly service: string; readonly text: string }[] = [];
  #chars = 0;
  #dropped = 0;

  /** Empty; holds `charsMax` characters. */
  constructor(charsMax: number = TELEMETRY_QUEUE_CHARS_MAX) {
    this.#charsMax = charsMax;
  }

  /** Whether nothing waits. */
  get isEmpty(): boolean {
    return this.#waiting.length === 0;
  }

  /** Takes a record in; `false` when there is no room, which is counted. */
  add(service: string, text: string): boolean {
    if (this.#chars + text.length > this.#charsMax) {
      this.#dropped++;
      return false;
    }
    this.#waiting.push({ service, text });
    this.#chars += text.length;
    return true;
  }

  /** How many found no room since this was asked last. */
  takeDropped(): number {
    const dropped = this.#dropped;
    this.#dropped = 0;
    return dropped;
  }

  /** Takes out the oldest, at least one and about as many as a frame should hold, by service. */
  takeFrame(): RecordGroup[] {
    const groups = new Map<string, string[]>();
    let count = 0;
    let chars = 0;
    for (const { service, text } of this.#waiting) {
      if (count > 0 && chars + text.length > TELEMETRY_FRAME_CHARS_MAX) break;
      count++;
      chars += text.length;
      const records = groups.get(service);
      if (records) records.push(text);
      else groups.set(service, [text]);
    }
    this.#waiting = this.#waiting.slice(count);
    this.#chars -= chars;
    return [...groups].map(([service, records]) => ({ service, records }));
  }
}
