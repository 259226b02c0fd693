/**
 * Frames of spans and logs that workers send: bounded, read, and counted when they are broken.
 *
 * The engine reads them in its only thread, so there is an end to what it reads in a second,
 * whoever sends it. Metrics are read elsewhere.
 *
 * @module
 */
import type { Clock } from "../../../engine/ports/clock.ts";
import type { Log } from "../../../engine/ports/log.ts";
import type { TelemetryFrame } from "../../../engine/ports/telemetry.ts";
import { TELEMETRY_WARNING_MS } from "../../limits.ts";
import { ReadingShare } from "../reading_share.ts";

/** Somebody who reads frames of a kind; throws when the whole is none. */
export interface FrameReader {
  /** Says what became of the items in it. */
  take(frame: unknown): { readonly taken: number; readonly dropped: number };
}

/** What an intake works with. */
export interface IntakeSetup {
  readonly clock: Clock;
  readonly log: Log;
  readonly spans: FrameReader;
  readonly logs: FrameReader;
}

/** What came in since the start. */
export interface IntakeStats {
  /** Frames that came, and those that were broken or too many. */
  readonly frames: number;
  readonly broken: number;
  readonly refused: number;
  /** Spans and log records that were kept, and those that were broken, too many or known. */
  readonly taken: number;
  readonly dropped: number;
}

/** See the top of this file. */
export class TelemetryIntake {
  readonly #setup: IntakeSetup;
  readonly #stats = { frames: 0, broken: 0, refused: 0, taken: 0, dropped: 0 };
  readonly #decoder = new TextDecoder("utf-8", { fatal: true });
  readonly #share: ReadingShare;
  #warnedAt = -Infinity;

  /** Stores. */
  constructor(setup: IntakeSetup) {
    this.#setup = setup;
    this.#share = new ReadingShare(setup.clock);
  }

  /** What came in since the start; live. */
  get stats(): IntakeStats {
    return this.#stats;
  }

  /** Hears of a frame; never throws. */
  hear({ kind, bytes, address, worker_id }: TelemetryFrame): void {
    if (kind === "MTRC") return;
    this.#stats.frames++;
    const from = { kind, id: worker_id ?? undefined, address: address ?? undefined };
    if (this.#share.read(bytes.length, () => this.#read(kind, bytes, from))) return;
    this.#stats.refused++;
    this.#warn("telemetry comes faster than it is read, so some is dropped", from);
  }

  #read(kind: "OTLP" | "LOGS", bytes: Uint8Array, from: Record<string, string | undefined>): void {
    try {
      const frame: unknown = JSON.parse(this.#decoder.decode(bytes));
      const reader = kind === "OTLP" ? this.#setup.spans : this.#setup.logs;
      const { taken, dropped } = reader.take(frame);
      this.#stats.taken += taken;
      this.#stats.dropped += dropped;
    } catch (thrown) {
      this.#stats.broken++;
      const [reason = ""] = String(thrown).split("\n", 1);
      this.#warn("telemetry that cannot be read is dropped", { ...from, reason });
    }
  }

  /** A line now and then: whoever sends nonsense sends much of it. */
  #warn(text: string, fields: Record<string, string | undefined>): void {
    const now = this.#setup.clock.now();
    if (now - this.#warnedAt < TELEMETRY_WARNING_MS) return;
    this.#warnedAt = now;
    const { broken, refused } = this.#stats;
    this.#setup.log.warn(text, { ...fields, broken, refused });
  }
}
