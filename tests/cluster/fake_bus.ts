/**
 * A bus between engines of one thread, which delays, loses and repeats messages as a test says.
 *
 * Messages of one engine to another arrive in their order, as NATS keeps it. Time is a fake clock's.
 *
 * @module
 */
import type { Bus, BusAnswer, BusMessage } from "../../engine/cluster/transport.ts";
import type { FakeClock } from "../fakes/fake_clock.ts";

/** What becomes of one message. */
export interface Fate {
  /** On its way, in milliseconds. */
  readonly delay_ms: number;
  /** How often it arrives: 0 for a lost one. */
  readonly copies: number;
}

interface Listener {
  readonly at: FakeBus;
  readonly subject: string;
  readonly hear: (message: BusMessage) => void;
  isOver?: boolean;
}

/** What joins the buses of all engines. */
export class FakeNetwork {
  readonly clock: FakeClock;
  /** Called for each message and receiver. */
  fate: (from: FakeBus, to: FakeBus, data: Uint8Array) => Fate = () => ({ delay_ms: 1, copies: 1 });
  /** Called for each message that is published. */
  onPublish: (subject: string, data: Uint8Array) => void = () => {};
  /** Messages that were published. */
  published = 0;
  /** By subject; of one that ends with `*`, by what stands before. */
  readonly #listeners = new Map<string, Set<Listener>>();
  /** When the last message of a pair arrives. */
  readonly #last = new Map<string, number>();
  #inboxes = 0;

  constructor(clock: FakeClock) {
    this.clock = clock;
  }

  /** The bus of an engine. */
  bus(name: string): FakeBus {
    return new FakeBus(this, name);
  }

  /** Listens. */
  listen(listener: Listener): () => void {
    const key = listener.subject.replace(/\*$/, "");
    const known = this.#listeners.get(key) ?? new Set();
    this.#listeners.set(key, known.add(listener));
    return () => {
      listener.isOver = true;
      known.delete(listener);
      if (known.size === 0) this.#listeners.delete(key);
    };
  }

  /** Sends to all listeners of a subject; how many there are. */
  publish(from: FakeBus, subject: string, data: Uint8Array, reply?: string): number {
    this.published++;
    this.onPublish(subject, data);
    const copy = data.slice();
    const wildcard = subject.slice(0, subject.lastIndexOf(".") + 1);
    const heard = [
      ...this.#listeners.get(subject) ?? [],
      ...this.#listeners.get(wildcard) ?? [],
    ].filter((one) => one.at.isConnected && one.at.side === from.side);
    for (const listener of heard) this.#deliver(from, listener, subject, copy, reply);
    return heard.length;
  }

  /** A subject for answers. */
  inbox(): string {
    return `inbox.${++this.#inboxes}`;
  }

  #deliver(
    from: FakeBus,
    listener: Listener,
    subject: string,
    data: Uint8Array,
    reply: string | undefined,
  ): void {
    const { delay_ms, copies } = this.fate(from, listener.at, data);
    const pair = `${from.name} ${listener.at.name}`;
    const at = Math.max(this.#last.get(pair) ?? 0, this.clock.now() + delay_ms);
    this.#last.set(pair, at);
    const { life } = listener.at;
    for (let i = 0; i < copies; i++) {
      this.clock.after(at - this.clock.now(), () => {
        if (listener.isOver || !listener.at.isConnected) return;
        if (listener.at.life !== life) return; // It lost its connection meanwhile.
        const respond = (answer = new Uint8Array(0)): void => {
          if (reply !== undefined) this.publish(listener.at, reply, answer);
        };
        listener.hear({ subject, data: data.slice(), respond });
      });
    }
  }
}

/** The bus as one engine sees it. */
export class FakeBus implements Bus {
  /** Why it is away. */
  problem = "";
  readonly name: string;
  /** Engines of different sides cannot hear each other: a partition. */
  side = 0;
  /** Changes with each loss of the connection. */
  life = 0;
  readonly #network: FakeNetwork;
  readonly #hearing = new Set<(isConnected: boolean) => void>();
  readonly #stops = new Set<() => void>();
  #isConnected = true;

  constructor(network: FakeNetwork, name: string) {
    this.#network = network;
    this.name = name;
  }

  get isConnected(): boolean {
    return this.#isConnected;
  }

  publish(subject: string, data: Uint8Array): void {
    if (this.#isConnected) this.#network.publish(this, subject, data);
  }

  subscribe(subject: string, hear: (message: BusMessage) => void): () => void {
    const stop = this.#network.listen({ at: this, subject, hear });
    this.#stops.add(stop);
    return stop;
  }

  request(
    subject: string,
    data: Uint8Array,
    timeout_ms: number,
    done: (answer: BusAnswer) => void,
  ): void {
    const { clock } = this.#network;
    const end = (answer: BusAnswer): void => {
      cancel();
      stop();
      done(answer);
    };
    const soon = (state: "away" | "no_responders"): void => {
      cancel = clock.after(1, () => end({ state }));
    };
    let [stop, cancel] = [(): void => {}, (): void => {}];
    if (!this.#isConnected) return soon("away");
    const inbox = this.#network.inbox();
    stop = this.subscribe(inbox, ({ data }) => end({ state: "answered", data }));
    if (this.#network.publish(this, subject, data, inbox) === 0) return soon("no_responders");
    cancel = clock.after(timeout_ms, () => end({ state: "timeout" }));
  }

  onStatus(hear: (isConnected: boolean) => void): () => void {
    this.#hearing.add(hear);
    return () => this.#hearing.delete(hear);
  }

  /** The connection is lost, or is there again. */
  connect(isConnected: boolean): void {
    if (this.#isConnected === isConnected) return;
    this.#isConnected = isConnected;
    this.life++;
    for (const hear of [...this.#hearing]) hear(isConnected);
  }

  /** The engine is killed: it listens to nothing any more. */
  kill(): void {
    this.#isConnected = false;
    for (const stop of this.#stops) stop();
  }
}
