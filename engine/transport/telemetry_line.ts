/**
 * A line that carries telemetry and nothing else: what comes is handed on, and nothing goes back.
 *
 * What is not telemetry is dropped, and so is what a line sends beyond its share of each second:
 * reading telemetry takes the engine's only thread.
 *
 * @module
 */
import { ByteBudget, TELEMETRY_BYTES_PER_SECOND } from "../core/guards.ts";
import type { Clock } from "../ports/clock.ts";
import type { ConnectionEvents } from "../ports/connection.ts";
import type { Log } from "../ports/log.ts";
import type { TelemetryFrame, TelemetryListener } from "../ports/telemetry.ts";

const KINDS: readonly string[] = ["OTLP", "MTRC", "LOGS"];
const MARK_BYTES = 4;

/** What such a line is given. */
export interface TelemetryLineOptions {
  readonly clock: Clock;
  readonly log: Log;
  /** Where it comes from. */
  readonly address: string;
  readonly listener: TelemetryListener;
}

/** One line of telemetry. */
export class TelemetryLine implements ConnectionEvents {
  readonly #options: TelemetryLineOptions;
  readonly #share = new ByteBudget(TELEMETRY_BYTES_PER_SECOND);
  #hasWarned = false;

  /** Takes a line that has opened. */
  constructor(options: TelemetryLineOptions) {
    this.#options = options;
  }

  text(): void {}

  textBytes(): void {}

  binary(bytes: Uint8Array): void {
    const kind = String.fromCharCode(...bytes.subarray(0, MARK_BYTES));
    if (!KINDS.includes(kind) || !this.#hasRoom(bytes.length)) return;
    this.#options.listener({
      kind: kind as TelemetryFrame["kind"],
      bytes: bytes.subarray(MARK_BYTES),
      worker_id: null,
      address: this.#options.address,
    });
  }

  drained(): void {}

  closed(): void {}

  #hasRoom(bytes: number): boolean {
    const { clock, log, address } = this.#options;
    if (this.#share.allow(bytes, clock.now())) return true;
    if (!this.#hasWarned) {
      this.#hasWarned = true;
      log.warn("telemetry is dropped: a line sends more than it may", {
        address,
        bytes_per_second: TELEMETRY_BYTES_PER_SECOND,
      });
    }
    return false;
  }
}
