/**
 * Hands what the core reports to whoever listens, and writes it to the log.
 *
 * A listener that throws is reported and harms nobody else.
 *
 * @module
 */
import type { EngineEvent, EventListener } from "../ports/events.ts";
import type { Log } from "../ports/log.ts";

/** One report, many listeners. */
export class EventHub {
  readonly #log: Log;
  readonly #listeners = new Set<EventListener>();

  /** Starts with the log as its only reader. */
  constructor(log: Log) {
    this.#log = log;
  }

  /** Hears of what happens from now on; call the result to stop. */
  listen(listener: EventListener): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Tells everybody. Never throws. */
  report(event: EngineEvent): void {
    this.#write(event);
    for (const listener of this.#listeners) {
      try {
        listener(event);
      } catch (thrown) {
        this.#log.error("a listener failed", { event: event.type, reason: String(thrown) });
      }
    }
  }

  #write(event: EngineEvent): void {
    switch (event.type) {
      case "worker_connected":
        return this.#log.debug("line opened", { id: event.worker_id, address: event.address });
      case "worker_announced":
        return this.#log[levelFor(event.name)]("worker joined", {
          worker: event.name,
          id: event.worker_id,
          pid: event.pid,
        });
      case "worker_disconnected":
        if (event.name === null) {
          return this.#log.debug("line closed", { id: event.worker_id, reason: event.reason });
        }
        return this.#log[levelFor(event.name)]("worker left", {
          worker: event.name,
          id: event.worker_id,
          reason: event.reason,
        });
      case "functions_changed":
      case "triggers_changed":
      case "supervised_changed":
        return; // Each watch of a console makes some; who runs a worker says more of it.
      case "config_changed":
        return this.#log.debug("configuration in force");
      case "trigger_parked":
        return this.#log.info("trigger waits for its type", {
          id: event.worker_id,
          trigger: event.trigger_id,
          trigger_type: event.trigger_type,
          function_id: event.function_id,
        });
      case "warning":
        return this.#log.warn(event.text, {
          id: event.worker_id ?? undefined,
          detail: event.detail,
        });
    }
  }
}

/** A command that comes and goes is no news. */
function levelFor(name: string): "debug" | "info" {
  return name === "engine-cli" ? "debug" : "info";
}
