/**
 * Calls the functions of many triggers without holding the thread.
 *
 * A change may concern thousands of triggers, and changes may come faster than they can be sent.
 * So firings run in slices of {@linkcode SLICE_MS}, with a timer between them in which the engine
 * serves its connections. Events wait in order; a trigger receives those that came after it was
 * added.
 *
 * @module
 */
import type { Clock } from "../../engine/ports/clock.ts";
import type { TriggerInstance } from "../../sdk/typescript/options.ts";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import type { Worker } from "../../sdk/typescript/worker.ts";
import { fireTriggers } from "../kit/triggers.ts";

/** How long firings may run before other work gets its turn. */
export const SLICE_MS = 2;
/** Pause between slices; a timer, because only that lets sockets be read. */
const PAUSE_MS = 1;
/** Events that wait; beyond, the oldest are dropped. */
export const EVENTS_WAITING_MAX = 1_000;
/** Firings between two looks at the clock. */
const FIRINGS_PER_LOOK = 8;

/** A trigger, and which events it is to receive. */
interface Subscribed {
  readonly trigger: TriggerInstance;
  /** The first event after it was added. */
  readonly from: number;
}

/** The triggers of one type, and their number of events on the way. */
export class Subscribers {
  readonly #triggers = new Map<string, Subscribed>();
  /** Events that have not reached all triggers yet. */
  waiting = 0;

  /** Number of triggers. */
  get size(): number {
    return this.#triggers.size;
  }

  /** Adds a trigger, or replaces the one with its id. */
  add(trigger: TriggerInstance, from: number): void {
    this.#triggers.set(trigger.id, { trigger, from });
  }

  /** Removes a trigger by its id. */
  remove(id: string): void {
    this.#triggers.delete(id);
  }

  /** The triggers; one that is removed meanwhile is left out. */
  all(): MapIterator<Subscribed> {
    return this.#triggers.values();
  }
}

/** One event on its way to the triggers of a type. */
interface Event {
  readonly number: number;
  readonly subscribers: Subscribers;
  readonly rest: MapIterator<Subscribed>;
  readonly payload: Json;
}

/** Sends events to triggers, in order and in slices. */
export class FanOut {
  readonly #worker: Pick<Worker, "trigger">;
  readonly #clock: Clock;
  readonly #dropped: () => void;
  readonly #events: Event[] = [];
  #cancel: (() => void) | undefined;
  #number = 0;

  /** `dropped` is called for each event that is dropped because too many wait. */
  constructor(worker: Pick<Worker, "trigger">, clock: Clock, dropped: () => void) {
    this.#worker = worker;
    this.#clock = clock;
    this.#dropped = dropped;
  }

  /** Adds a trigger, which receives the events from now on. */
  subscribe(subscribers: Subscribers, trigger: TriggerInstance): void {
    subscribers.add(trigger, this.#number);
  }

  /** Calls the functions of all triggers of a type, now or as soon as it is their turn. */
  send(subscribers: Subscribers, payload: Json): void {
    const number = this.#number++;
    if (subscribers.size === 0) return;
    if (this.#events.length >= EVENTS_WAITING_MAX) {
      this.#events.shift()!.subscribers.waiting--;
      this.#dropped();
    }
    subscribers.waiting++;
    this.#events.push({ number, subscribers, rest: subscribers.all(), payload });
    if (!this.#cancel) this.#run();
  }

  /** Drops all events. */
  stop(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    this.#events.length = 0;
  }

  #run(): void {
    const end = this.#clock.now() + SLICE_MS;
    // Set while it runs: what a firing causes waits for its turn.
    this.#cancel = () => {};
    let fired = 0;
    for (let event = this.#events[0]; event; event = this.#events[0]) {
      for (const { trigger, from } of rest(event)) {
        if (from > event.number) continue;
        fireTriggers(this.#worker, [trigger], event.payload);
        if (++fired % FIRINGS_PER_LOOK === 0 && this.#clock.now() >= end) return this.#pause();
      }
      // A firing may cause an event for which this one was dropped.
      if (this.#events[0] !== event) continue;
      this.#events.shift();
      event.subscribers.waiting--;
    }
    this.#cancel = undefined;
  }

  #pause(): void {
    this.#cancel = this.#clock.after(PAUSE_MS, () => this.#run());
  }
}

/** The triggers that an event has not reached; ending a loop over them early loses none. */
function* rest(event: Event): Generator<Subscribed> {
  for (let next = event.rest.next(); !next.done; next = event.rest.next()) yield next.value;
}
