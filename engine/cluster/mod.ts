/**
 * Several engines as one: the parts of an engine with `engine.cluster`.
 *
 * Imported only where config.yaml has that section. The other engines are lines of the router
 * (`links.ts`), over NATS (`nats_bus.ts`); who keeps the state is decided by a
 * {@linkcode ClusterKeeper}, which uses {@linkcode ClusterParts} and nothing else of this folder.
 *
 * @module
 */
import type { ChannelTable } from "../channels/channel_table.ts";
import type { ClusterSettings } from "../ports/config.ts";
import type { Clock } from "../ports/clock.ts";
import type { Log } from "../ports/log.ts";
import type { AppendTimesView, ClusterLogView, Engines } from "../ports/directory.ts";
import type { MemoryBudget } from "../ports/memory.ts";
import { ClusterEngines } from "./cluster_engines.ts";
import { type LinkedRouter, Links } from "./links.ts";
import { NatsBus } from "./nats_bus.ts";

/** What a cluster is started with. */
export interface ClusterSetup {
  readonly settings: ClusterSettings;
  readonly clock: Clock;
  readonly log: Log;
  readonly router: LinkedRouter;
  readonly memory: MemoryBudget;
  /** Of the engine. */
  readonly version: string;
  readonly maxMessageBytes: number;
  readonly channels: ChannelTable;
}

/** What the keeper of the state gets of the cluster. */
export interface ClusterParts {
  readonly settings: ClusterSettings;
  readonly clock: Clock;
  readonly log: Log;
  /** Of this start of the engine: 16 hexadecimal digits that are never used again. */
  readonly life: string;
  /** Subjects of the cluster; `connection()` is the client's, for the packages built on it. */
  readonly bus: NatsBus;
  /** Whether there is a link to the engine of that life now. */
  isLinked(life: string): boolean;
  /** Calls `hear` after a link was opened or has ended. Call the result to stop. */
  onLinks(hear: () => void): () => void;
  /**
   * The built-in workers of this engine whose functions and trigger types the other engines get;
   * replaces the list before. Empty while this engine does not keep the state.
   */
  share(builtins: readonly string[]): void;
}

/** Keeps the state of the cluster, at one engine at a time. */
export interface ClusterKeeper extends AsyncDisposable {
  /** Life of the engine that keeps the state, as far as it is known here. */
  readonly keeper: string | undefined;
  /** How often this engine became the keeper. */
  readonly takeovers: number;
  /** The log of the state. */
  readonly log: ClusterLogView;
  /** How long it took to acknowledge what this engine appended. */
  readonly appends: AppendTimesView | null;
}

/** A running cluster. */
export interface Cluster extends AsyncDisposable {
  readonly parts: ClusterParts;
  readonly engines: Engines;
  /** Shows who keeps the state, from now on. */
  showKeeper(keeper: ClusterKeeper): void;
  /** Opens links to the other engines; to be called when this engine takes calls. */
  join(): void;
  /** What is registered at this engine has changed. */
  changed(): void;
  /** Resolves when no other engine sends calls to this one any more, which is about to stop. */
  drain(): Promise<void>;
  /** Ends all links; the other engines learn of it at once. */
  leave(): Promise<void>;
}

/** Starts to reach NATS; the engine goes on while that is away. */
export function startCluster(setup: ClusterSetup): Cluster {
  const { settings, clock, log, router, memory, version, maxMessageBytes, channels } = setup;
  const bus = new NatsBus({ settings, clock, log });
  const life = newLife();
  const place = /^postgres/.test(settings.log) ? "postgres" : settings.log;
  const self = { life, name: settings.engine_name, version, log: place };
  let shared: readonly string[] = [];
  const links = new Links({
    cluster: settings.name,
    self,
    bus,
    clock,
    log,
    memory,
    router,
    maxMessageBytes,
    defer: queueMicrotask,
    isShared: (builtin) => shared.includes(builtin),
    claimChannel: (upgrade) => channels.claimOwn(upgrade),
  });
  channels.join(life, (other, upgrade) => links.streams.claim(other, upgrade));
  bus.start();
  const parts: ClusterParts = {
    settings,
    clock,
    log,
    life,
    bus,
    isLinked: (other) => links.peerOf(other) !== undefined,
    onLinks: (hear) => links.listen(hear),
    share(builtins) {
      shared = builtins;
      links.changed();
    },
  };
  const engines = new ClusterEngines({ settings, clock, links, bus, self });
  return {
    parts,
    engines,
    showKeeper: (keeper) => engines.keeping = keeper,
    join: () => links.start(),
    changed: () => links.changed(),
    drain: () => new Promise((resolve) => links.drain(resolve)),
    async leave() {
      links.stop();
      await bus.flush();
    },
    async [Symbol.asyncDispose]() {
      links.stop();
      await bus[Symbol.asyncDispose]();
    },
  };
}

/** A name for one start of an engine. */
function newLife(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(8));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
