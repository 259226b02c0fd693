/**
 * The engines of the cluster as listings and metrics show them.
 *
 * @module
 */
import type { Clock } from "../ports/clock.ts";
import type { ClusterSettings } from "../ports/config.ts";
import type {
  AppendTimesView,
  ClusterLogView,
  Engines,
  EngineView,
  TriggerOrder,
} from "../ports/directory.ts";
import type { Link, OtherEngine } from "./link.ts";
import type { Links } from "./links.ts";
import { ENDS, type LinkEnd } from "./packet.ts";

/** What is shown. */
export interface ClusterEnginesSetup {
  readonly settings: Pick<ClusterSettings, "name">;
  readonly clock: Pick<Clock, "now">;
  readonly links: Pick<Links, "all" | "ends" | "orderOf">;
  readonly bus: { readonly isConnected: boolean; readonly problem: string };
  /** This engine. */
  readonly self: OtherEngine;
}

/** Reads links. */
export class ClusterEngines implements Engines {
  readonly #setup: ClusterEnginesSetup;
  /** Who keeps the state; `undefined`: each engine keeps its own. */
  keeping:
    | Pick<Engines, "takeovers" | "log" | "appends"> & { readonly keeper: string | undefined }
    | undefined;

  constructor(setup: ClusterEnginesSetup) {
    this.#setup = setup;
  }

  get cluster(): string {
    return this.#setup.settings.name;
  }

  get life(): string {
    return this.#setup.self.life;
  }

  get isConnected(): boolean {
    return this.#setup.bus.isConnected;
  }

  get problem(): string | null {
    const { bus } = this.#setup;
    return bus.isConnected || bus.problem === "" ? null : bus.problem;
  }

  get takeovers(): number {
    return this.keeping?.takeovers ?? 0;
  }

  get keeper(): string | null {
    return this.keeping?.keeper ?? null;
  }

  get log(): ClusterLogView | null {
    return this.keeping?.log ?? null;
  }

  get appends(): AppendTimesView | null {
    return this.keeping?.appends ?? null;
  }

  list(): EngineView[] {
    const { self: { life, name, version }, links } = this.#setup;
    const keeper = this.keeping?.keeper === life;
    const here = { life, name, version, state: "here", keeper, link: null } as const;
    return [here, ...links.all.map((link) => this.#viewOf(link))];
  }

  ends(): ReadonlyMap<string, number> {
    const keys = Object.keys(ENDS) as LinkEnd[];
    return new Map(keys.map((key) => [key, this.#setup.links.ends.get(key) ?? 0]));
  }

  orderOf(trigger_id: string): TriggerOrder {
    return this.#setup.links.orderOf(trigger_id);
  }

  #viewOf(link: Link): EngineView {
    const { engine: { life, name, version }, isDraining, rtt, calls } = link;
    return {
      life,
      name,
      version,
      state: isDraining ? "draining" : "linked",
      keeper: this.keeping?.keeper === life,
      link: {
        age_ms: Math.round(this.#setup.clock.now() - link.openedAt),
        rtt_ms: rtt ?? null,
        calls_out: calls.out,
        calls_in: calls.in,
        bytes_out: link.sentBytes,
        bytes_in: link.receivedBytes,
        queued_bytes: link.queuedBytes,
      },
    };
  }
}
