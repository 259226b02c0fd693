/**
 * All links of an engine: who is there, when a link opens, and when it is over.
 *
 * Of two engines the one with the smaller life opens. An engine from which nothing came for a
 * moment is asked whether it lives; that nothing listens there says within that moment that it is
 * dead. When a link ends, the calls on it end, and it is opened anew if the other engine is there.
 *
 * @module
 */
import type { JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import type { FunctionLoad } from "../core/function_table.ts";
import type { Bus, BusAnswer, BusMessage } from "./transport.ts";
import type { Clock } from "../ports/clock.ts";
import type {
  Accept,
  Connection,
  ConnectionEvents,
  Refusal,
  Upgrade,
} from "../ports/connection.ts";
import { type Directory, ENGINE_NAMESPACE, type TriggerOrder } from "../ports/directory.ts";
import type { Log } from "../ports/log.ts";
import type { MemoryBudget } from "../ports/memory.ts";
import type { Handover, Traffic } from "../ports/traffic.ts";
import { CLUSTER_PROTOCOL, encodeHello, type Hello, readHello } from "./hello.ts";
import { ExportPace } from "./export_pace.ts";
import { Link, type OtherEngine, WINDOW_BYTES } from "./link.ts";
import { LoadReports } from "./load_reports.ts";
import { Streams } from "./streams.ts";
import { TriggerTimes } from "./trigger_times.ts";
import { ENDS, HEAD_BYTES, KIND, type LinkEnd, makePacket, readHead } from "./packet.ts";

/** An engine from which nothing came for so long is asked whether it lives. */
export const QUIET_MS = 250;
/** With more links than these, each lets every engine be quiet for so much longer. */
const FEW_ENGINES = 8;
const QUIET_EACH_MS = 15;
/** Also an engine that is heard is asked so often, for the time there and back. */
const MEASURED_MS = 5_000;
/** Between two looks at all links. */
const LOOK_MS = 125;
/** How long an engine may take to answer a ping. */
export const PING_TIMEOUT_MS = 500;
/** Pings in a row that may be unanswered. */
export const PINGS_MAX = 3;
/** Between two hellos. */
export const HELLO_MS = 2_000;
/** Shortest time between two hellos. */
const HELLO_LEAST_MS = 100;
/** How long an engine may take to open its end of a link. */
const OPEN_TIMEOUT_MS = 1_000;
/** How long the others may take to send no more calls to an engine that drains. */
export const DRAIN_TIMEOUT_MS = 1_000;
/** Engines of one cluster. */
export const ENGINES_MAX = 256;
/** Bytes that are on their way on all links together. */
const WINDOWS_BYTES = 32 * 1024 * 1024;
const WINDOW_BYTES_MIN = 512 * 1024;
/** Engines that are remembered because they do not fit. */
const UNFIT_MAX = 1_000;
/** Shortest time between two resets of one life. */
const RESET_MS = 100;

/** The router, as links use it. */
export interface LinkedRouter {
  readonly directory: Directory;
  readonly traffic: Traffic;
  open(
    connection: Connection,
    info: { address: string; launch_id: null; builtin: null; engine: string },
  ): ConnectionEvents & { readonly peer: { readonly id: string } };
  loads(): Iterable<FunctionLoad>;
  reportLoad(
    worker_id: string,
    function_id: string,
    namespace: string,
    load: { replicas: number; running: number },
  ): void;
}

/** What links use. */
export interface LinksSetup {
  readonly cluster: string;
  readonly self: OtherEngine;
  readonly bus: Bus;
  readonly clock: Clock;
  readonly log: Log;
  readonly memory: MemoryBudget;
  readonly router: LinkedRouter;
  readonly maxMessageBytes: number;
  /** Runs a task at the end of the tick. */
  defer(task: () => void): void;
  /** Claims an end of a channel of this engine. */
  claimChannel(upgrade: Upgrade): Refusal | Accept;
  /** Whether other engines get what a built-in worker of this one offers. */
  isShared(builtin: string): boolean;
  /** What this engine speaks. Default: {@linkcode CLUSTER_PROTOCOL}. */
  readonly protocol?: number;
}

/** A link and its peer. */
interface Line {
  readonly link: Link;
  readonly peerId: string;
  handover: Handover | undefined;
}

/** The links of an engine. */
export class Links {
  /** Ends of channels over links. */
  readonly streams: Streams;
  readonly #setup: LinksSetup;
  readonly #protocol: number;
  readonly #prefix: string;
  /** By life. */
  readonly #lines = new Map<string, Line>();
  readonly #byPeer = new Map<string, Line>();
  readonly #unfit = new Set<string>();
  readonly #resets = new Map<string, number>();
  readonly #listeners = new Set<() => void>();
  readonly #exports: ExportPace;
  readonly #loads: LoadReports;
  readonly #times: TriggerTimes;
  readonly #ends = new Map<LinkEnd, number>();
  #stops: (() => void)[] = [];
  #epoch = 0;
  #helloAt = -Infinity;
  #cancelHello: (() => void) | undefined;
  #state: "idle" | "open" | "draining" | "over" = "idle";
  /** Links whose engines may still send calls, while this one drains. */
  #undrained = new Set<Link>();
  #drained = (): void => {};

  constructor(setup: LinksSetup) {
    this.#setup = setup;
    this.#protocol = setup.protocol ?? CLUSTER_PROTOCOL;
    this.#prefix = `E.${setup.cluster}`;
    const { router: { directory }, clock, isShared } = setup;
    const isEngine = (worker_id: string): boolean => this.#byPeer.has(worker_id);
    const namespace = ENGINE_NAMESPACE + setup.self.life;
    this.#times = new TriggerTimes(() => clock.wall());
    const { defer } = setup;
    const sources = { directory, isEngine, isShared, namespace, times: this.#times };
    this.#exports = new ExportPace({ clock, defer, ...sources });
    this.#loads = new LoadReports(setup.router);
    const linkTo = (life: string): Link | undefined => this.#lines.get(life)?.link;
    this.streams = new Streams({ linkTo, claim: (upgrade) => setup.claimChannel(upgrade) });
  }

  /** The links that are open, by the life of their engine. */
  get all(): readonly Link[] {
    return [...this.#lines.values()].map(({ link }) => link);
  }

  /** How often links have ended, by reason. */
  get ends(): ReadonlyMap<LinkEnd, number> {
    return this.#ends;
  }

  /** The engine behind a connection of the router. */
  engineOf(worker_id: string): OtherEngine | undefined {
    return this.#byPeer.get(worker_id)?.link.engine;
  }

  /** The connection of the router that leads to an engine. */
  peerOf(life: string): string | undefined {
    return this.#lines.get(life)?.peerId;
  }

  /** The place of a trigger among equal ones, the same at all engines: the larger is newer. */
  orderOf(trigger_id: string): TriggerOrder {
    const { life } = this.#setup.self;
    const other = this.#lines.get(trigger_id.slice(0, life.length))?.link;
    const at = other?.created.get(trigger_id);
    if (at !== undefined) return { at, id: trigger_id };
    return { at: this.#times.of(trigger_id), id: `${life}:${trigger_id}` };
  }

  /** Calls `hear` after a link was opened or has ended. Call the result to stop. */
  listen(hear: () => void): () => void {
    this.#listeners.add(hear);
    return () => this.#listeners.delete(hear);
  }

  /** Begins to look for other engines. */
  start(): void {
    if (this.#state !== "idle") return;
    this.#state = "open";
    const { bus, self } = this.#setup;
    this.#stops = [
      bus.subscribe(`${this.#prefix}.to.${self.life}.*`, (message) => this.#take(message)),
      bus.subscribe(`${this.#prefix}.hello`, ({ data }) => this.#heardOf(readHello(data))),
      bus.onStatus((isConnected) => this.#statusChanged(isConnected)),
      this.#every(HELLO_MS, () => this.#sayHello()),
      this.#every(LOOK_MS, () => this.#look()),
      this.#every(QUIET_MS, () => this.#loads.send(this.#lines.values())),
    ];
    this.#sayHello();
  }

  /** What is registered at this engine has changed. */
  changed(): void {
    if (this.#lines.size > 0) this.#exports.changed(() => this.all);
  }

  /** Asks the others for no more calls; `done` is called when none sends any. */
  drain(done: () => void): void {
    if (this.#state !== "open") return done();
    this.#state = "draining";
    this.#undrained = new Set(this.all);
    this.#drained = done;
    for (const link of this.#undrained) link.tell({ type: "drain" });
    this.#stops.push(this.#setup.clock.after(DRAIN_TIMEOUT_MS, () => this.#finishDrain()));
    this.#isDrained();
  }

  /** Ends all links; the others learn of it at once. */
  stop(): void {
    if (this.#state === "over") return;
    this.#finishDrain();
    this.#state = "over";
    for (const stop of this.#stops) stop();
    this.#cancelHello?.();
    this.#exports.stop();
    for (const link of this.all) this.#end(link, "left");
  }

  #every(ms: number, task: () => void): () => void {
    let cancel = (): void => {};
    const next = (): void => {
      cancel = this.#setup.clock.after(ms, () => {
        next();
        task();
      });
    };
    next();
    return () => cancel();
  }

  #statusChanged(isConnected: boolean): void {
    if (isConnected) return this.#sayHello();
    // Messages that were on their way are lost.
    for (const link of this.all) this.#end(link, "away");
  }

  #sayHello(): void {
    const { bus, clock, self } = this.#setup;
    if (this.#state !== "open") return;
    const wait = this.#helloAt + HELLO_LEAST_MS - clock.now();
    if (wait > 0) {
      this.#cancelHello ??= clock.after(wait, () => {
        this.#cancelHello = undefined;
        this.#sayHello();
      });
      return;
    }
    this.#helloAt = clock.now();
    bus.publish(`${this.#prefix}.hello`, encodeHello(self, this.#protocol));
  }

  #heardOf(hello: Hello | undefined): void {
    const { self } = this.#setup;
    if (!hello || hello.life === self.life || this.#lines.has(hello.life)) return;
    if (this.#state !== "open" || !this.#fits(hello)) return;
    if (self.life < hello.life) this.#open(hello);
    else this.#sayHello();
  }

  /** Whether an engine can be linked to; logs once why not. */
  #fits(hello: Hello): boolean {
    const { life, name, version } = hello;
    const reason = this.#misfitOf(hello);
    if (reason === undefined) return true;
    if (this.#unfit.has(life)) return false;
    if (this.#unfit.size >= UNFIT_MAX) this.#unfit.clear();
    this.#unfit.add(life);
    this.#setup.log.warn("an engine of the cluster is not linked", {
      engine: name,
      version,
      reason,
    });
    return false;
  }

  #misfitOf({ protocol, log }: Hello): string | undefined {
    const own = this.#setup.self.log;
    if (protocol !== this.#protocol) {
      return `it speaks protocol ${protocol} of clusters, this engine ${this.#protocol}; ` +
        "run engines of one version";
    }
    if (log !== undefined && own !== undefined && log !== own) {
      return `it has log: ${log} below engine.cluster, this engine ${own}; one cluster keeps its ` +
        "state in one place";
    }
    const isFull = this.#lines.size >= ENGINES_MAX;
    return isFull ? `a cluster has at most ${ENGINES_MAX} engines` : undefined;
  }

  #open(engine: OtherEngine): void {
    const { bus, self } = this.#setup;
    const link = this.#makeLink(engine, ++this.#epoch);
    const packet = makePacket(KIND.open, link.epoch, encodeHello(self, this.#protocol));
    bus.request(this.#subjectOf(engine.life), packet, OPEN_TIMEOUT_MS, (answer) => {
      if (link.isOver) return;
      if (answer.state !== "answered") return this.#end(link, endOf(answer));
      if (answer.data.length > 0) return this.#end(link, "refused");
      link.heardAt = this.#setup.clock.now();
    });
  }

  #makeLink(engine: OtherEngine, epoch: number): Link {
    const { bus, clock, memory, maxMessageBytes, self, router, defer, log } = this.#setup;
    const subject = this.#subjectOf(engine.life);
    const link: Link = new Link({
      engine,
      life: self.life,
      epoch,
      windowBytes: windowOf(this.#lines.size + 1),
      maxMessageBytes,
      memory,
      now: () => clock.now(),
      publish: (packet) => bus.publish(subject, packet),
      defer,
      heard: (message) => this.#heard(line, message),
      stream: (from, bytes, start, end) => this.streams.take(from, bytes, start, end),
      over: (reason) => this.#end(link, reason),
    });
    const { name, life } = engine;
    const info = { address: `engine:${name}`, launch_id: null, builtin: null, engine: name };
    const events = router.open(link, info);
    const line: Line = { link, peerId: events.peer.id, handover: undefined };
    this.#lines.set(life, line);
    this.#byPeer.set(line.peerId, line);
    this.#resize();
    link.start(events);
    this.#exports.begin(link);
    log.info("linked to an engine", { engine: name, life, version: engine.version });
    this.#changed();
    return link;
  }

  #take(message: BusMessage): void {
    const { data, subject } = message;
    const head = readHead(data);
    const life = subject.slice(subject.lastIndexOf(".") + 1);
    if (!head || this.#state === "over") return;
    const line = this.#lines.get(life);
    if (head.kind === KIND.open) return this.#opened(line, head.epoch, message);
    if (line?.link.epoch !== head.epoch) {
      // Its sender may not know that this link is over.
      if (head.kind !== KIND.reset) this.#reset(life, head.epoch);
    } else if (head.kind === KIND.reset) this.#end(line.link, "reset");
    else if (head.kind === KIND.ping) {
      if (line.link.pinged(head)) message.respond();
    } else line.link.take(head, data);
  }

  /** The other engine opens a link. */
  #opened(line: Line | undefined, epoch: number, message: BusMessage): void {
    const hello = readHello(message.data.subarray(HEAD_BYTES));
    if (!hello || !message.subject.endsWith(`.${hello.life}`)) return;
    if (line?.link.epoch === epoch) return message.respond(); // It came twice.
    if (line && epoch < line.link.epoch) return; // It is late.
    const isWelcome = this.#state === "open" && this.#fits(hello);
    if (line) this.#end(line.link, "anew");
    if (!isWelcome) return message.respond(REFUSED);
    message.respond();
    this.#makeLink(hello, epoch);
  }

  /** Asks the engines that have been quiet, may have missed the last packet, or for the time. */
  #look(): void {
    const now = this.#setup.clock.now();
    for (const { link } of this.#lines.values()) {
      const since = Math.min(link.heardAt, link.unconfirmedSince ?? Infinity);
      const isDue = now - since >= this.#quietFor(link) || now - link.pingedAt >= MEASURED_MS;
      if (isDue && !link.isPinging) this.#ping(link);
    }
  }

  /**
   * How long an engine may be quiet: longer where there are many, so that pings stay few. Then the
   * one with the smaller life asks, and the other one hears that.
   */
  #quietFor({ engine: { life } }: Link): number {
    const others = this.#lines.size - FEW_ENGINES;
    if (others <= 0) return QUIET_MS;
    const isSecond = this.#setup.self.life > life;
    return QUIET_MS + others * QUIET_EACH_MS + (isSecond ? 2 * LOOK_MS : 0);
  }

  #ping(link: Link): void {
    const { bus, clock } = this.#setup;
    const [sentAt, number] = [clock.now(), link.number];
    const head = { number, acknowledged: link.acknowledge() };
    const packet = makePacket(KIND.ping, link.epoch, undefined, head);
    link.isPinging = true;
    link.pingedAt = sentAt;
    bus.request(this.#subjectOf(link.engine.life), packet, PING_TIMEOUT_MS, (answer) => {
      link.isPinging = false;
      if (link.isOver) return;
      if (answer.state === "answered") link.answered(clock.now() - sentAt, number);
      else if (answer.state !== "timeout" || ++link.missedPings >= PINGS_MAX) {
        this.#end(link, endOf(answer));
      }
    });
  }

  #heard(line: Line, message: JsonObject): void {
    const { router } = this.#setup;
    if (message.type === "drain") {
      line.link.isDraining = true;
      line.handover ??= router.traffic.drain([line.peerId], { isComingBack: false });
      line.link.tell({ type: "drained" });
      this.#changed();
    } else if (message.type === "drained") {
      this.#undrained.delete(line.link);
      this.#isDrained();
    } else if (message.type === "load") this.#loads.take(line.peerId, message);
  }

  #isDrained(): void {
    if (this.#undrained.size === 0) this.#finishDrain();
  }

  #finishDrain(): void {
    this.#undrained.clear();
    const done = this.#drained;
    this.#drained = () => {};
    done();
  }

  #end(link: Link, reason: LinkEnd): void {
    const { life, name } = link.engine;
    const line = this.#lines.get(life);
    if (line?.link !== link) return;
    this.#lines.delete(life);
    this.#byPeer.delete(line.peerId);
    this.#exports.forget(link);
    this.#loads.forget(link);
    this.#ends.set(reason, (this.#ends.get(reason) ?? 0) + 1);
    this.#setup.log.info("a link to an engine ended", { engine: name, life, reason: ENDS[reason] });
    if (reason !== "reset" && reason !== "gone") this.#reset(life, link.epoch, true);
    link.end(ENDS[reason]);
    this.streams.ended(link);
    line.handover?.end();
    this.#resize();
    if (this.#undrained.delete(link)) this.#isDrained();
    this.#changed();
    if (reason !== "left" && reason !== "refused") this.#sayHello();
  }

  /** Says that a link is over. What comes from it without end is answered now and then. */
  #reset(life: string, epoch: number, isEnd = false): void {
    const { bus, clock } = this.#setup;
    const now = clock.now();
    if (!isEnd && now - (this.#resets.get(life) ?? -Infinity) < RESET_MS) return;
    if (this.#resets.size >= UNFIT_MAX) this.#resets.clear();
    this.#resets.set(life, now);
    bus.publish(this.#subjectOf(life), makePacket(KIND.reset, epoch));
  }

  #resize(): void {
    const windowBytes = windowOf(this.#lines.size);
    for (const { link } of this.#lines.values()) link.windowBytes = windowBytes;
  }

  #changed(): void {
    for (const hear of [...this.#listeners]) hear();
  }

  #subjectOf(life: string): string {
    return `${this.#prefix}.to.${life}.${this.#setup.self.life}`;
  }
}

/** The answer to an `open` that is refused; an empty one accepts it. */
const REFUSED = new Uint8Array(1);

function windowOf(engines: number): number {
  const share = WINDOWS_BYTES / Math.max(1, engines);
  return Math.max(WINDOW_BYTES_MIN, Math.min(WINDOW_BYTES, share));
}

function endOf({ state }: BusAnswer): LinkEnd {
  if (state === "no_responders") return "gone";
  return state === "away" ? "away" : "silent";
}
