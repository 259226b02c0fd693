/**
 * Engines of one thread: a router and its links, on a fake bus and a fake clock.
 *
 * @module
 */
import { ChannelTable } from "../../engine/channels/channel_table.ts";
import { Links } from "../../engine/cluster/links.ts";
import { Router, type RouterOptions } from "../../engine/core/router.ts";
import type { CallObserver } from "../../engine/ports/call_observer.ts";
import { type MemoryBudget, UNLIMITED_MEMORY } from "../../engine/ports/memory.ts";
import { FakeClock } from "../fakes/fake_clock.ts";
import { FakeConnection, type FakePeer, fakePeer } from "../fakes/fake_connection.ts";
import { DEFAULT_SETTINGS, fakeSchemas } from "../fakes/fake_router.ts";
import { type FakeBus, FakeNetwork } from "./fake_bus.ts";

/** What differs between engines. */
export interface FakeEngineOptions {
  readonly settings?: Partial<RouterOptions["settings"]>;
  readonly maxMessageBytes?: number;
  readonly memory?: MemoryBudget;
  readonly observer?: CallObserver;
  /** Where it keeps state. Default: `none`. */
  readonly log?: string;
  /** What its links speak, if not what others do. */
  readonly protocol?: number;
  /** Names of shared built-in workers. */
  readonly shared?: readonly string[];
}

/** A worker of a fake engine. */
export interface FakeWorker extends FakePeer {
  readonly worker_id: string;
}

/** One engine. */
export class FakeEngine {
  readonly name: string;
  readonly life: string;
  readonly bus: FakeBus;
  readonly router: Router;
  readonly links: Links;
  readonly channels: ChannelTable;
  /** Lines of its log. */
  readonly lines: string[] = [];
  readonly #cluster: FakeCluster;
  #ids = 0;

  constructor(cluster: FakeCluster, life: string, options: FakeEngineOptions) {
    const { clock, network } = cluster;
    const { settings, memory = UNLIMITED_MEMORY, maxMessageBytes = 64 * 1024 * 1024 } = options;
    this.#cluster = cluster;
    this.life = life;
    this.name = `e${life.slice(-4)}`;
    this.bus = network.bus(this.name);
    this.router = new Router({
      clock,
      schemas: fakeSchemas,
      settings: { ...DEFAULT_SETTINGS, ...settings },
      newId: () => this.#newId(),
      report: ({ type }) => {
        if (type === "functions_changed" || type === "triggers_changed") this.links?.changed();
      },
      memory,
      ...options.observer && { observer: options.observer },
    });
    const print = (text: string, fields: Record<string, unknown> = {}): void =>
      void this.lines.push(`${text} ${JSON.stringify(fields)}`);
    this.links = new Links({
      cluster: "test",
      self: { life, name: this.name, version: "1.2.3", log: options.log ?? "none" },
      bus: this.bus,
      clock,
      log: { debug: print, info: print, warn: print, error: print },
      memory,
      router: this.router,
      maxMessageBytes,
      ...options.protocol !== undefined && { protocol: options.protocol },
      defer: (task) => void clock.after(0, task),
      isShared: (builtin) => options.shared?.includes(builtin) ?? false,
      claimChannel: (upgrade) => this.channels.claimOwn(upgrade),
    });
    this.channels = new ChannelTable({ clock, memory });
    this.channels.join(life, (other, upgrade) => this.links.streams.claim(other, upgrade));
    this.links.start();
  }

  /** A worker connects; its greeting is taken already. */
  worker(name?: string, builtin: string | null = null): FakeWorker {
    const connection = new FakeConnection(this.#newId());
    const info = { address: null, launch_id: null, builtin };
    const session = this.router.open(connection, info);
    connection.take();
    const worker = { ...fakePeer(connection, session), worker_id: session.peer.id };
    if (name !== undefined) {
      const data = { name, capabilities: ["cancel", "timeout", "progress"] };
      worker.say({ type: "invokefunction", function_id: "engine::workers::register", data });
    }
    return worker;
  }

  /** Names of the engines that it is linked to. */
  get others(): string[] {
    return this.links.all.map(({ engine }) => engine.name).sort();
  }

  /** The process ends without a word. */
  kill(): void {
    this.bus.kill();
    this.#cluster.engines.delete(this);
    this.links.stop();
    this.router.close();
  }

  /** The engine stops in order, once no engine sends it calls any more. */
  leave(): void {
    this.links.drain(() => {
      this.links.stop();
      this.router.close();
      this.bus.kill();
      this.#cluster.engines.delete(this);
    });
  }

  #newId(): string {
    const count = String(++this.#ids).padStart(12, "0");
    return `00000000-0000-4000-9000-${this.life.slice(-4)}${count.slice(4)}`;
  }
}

/** Several engines. */
export class FakeCluster {
  readonly clock: FakeClock = new FakeClock();
  readonly network: FakeNetwork = new FakeNetwork(this.clock);
  readonly engines = new Set<FakeEngine>();
  #lives = 0;

  /** Starts an engine; lives grow unless one is given. */
  start(options: FakeEngineOptions = {}, life?: string): FakeEngine {
    const engine = new FakeEngine(this, life ?? (++this.#lives).toString(16).padStart(16, "0"), {
      ...options,
    });
    this.engines.add(engine);
    return engine;
  }

  /** Ends everything; what is left on the clock then was forgotten by its owner. */
  stop(): void {
    for (const engine of [...this.engines]) engine.kill();
  }
}
