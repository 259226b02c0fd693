/**
 * Which worker provides which type of trigger.
 *
 * A plain table. Several workers may offer one type; the newest serves it, the one before takes
 * over when that leaves, and the engine's own are never displaced.
 *
 * @module
 */
import { DEFAULT_NAMESPACE, type RegisterTriggerType } from "../../sdk/typescript/wire/protocol.ts";
import type { Peer } from "./peer.ts";
import type { Delivery, Trigger } from "./trigger_table.ts";

/** A worker that offers a type. */
export interface Provider {
  readonly peer: Peer;
  readonly registration: RegisterTriggerType;
}

/** A type that somebody provides, or that triggers wait for. */
export interface TriggerType {
  readonly namespace: string;
  readonly id: string;
  /** The last one serves; empty: nobody does. */
  readonly providers: Provider[];
  /** All triggers of the type. */
  readonly triggers: Set<Trigger>;
  /** What an own worker of the engine was given, by what it says: PROTOCOL 4.1 rule 9. */
  readonly shared: Map<string, Delivery[]>;
  /** Triggers whose worker has left and is to come back, by what they say. */
  readonly left: Map<string, Set<Trigger>>;
}

/** The types of triggers. */
export class TriggerTypes {
  readonly #types = new Map<string, TriggerType>();
  readonly #byPeer = new Map<Peer, Set<TriggerType>>();

  /** All types, also those that nobody provides. */
  all(): Iterable<TriggerType> {
    return this.#types.values();
  }

  /** The type of that name, if it is known. */
  find(id: string, namespace: string = DEFAULT_NAMESPACE): TriggerType | undefined {
    return this.#types.get(keyOf(namespace, id));
  }

  /** The type of that name, made if need be. */
  open(id: string, namespace: string = DEFAULT_NAMESPACE): TriggerType {
    const known = this.find(id, namespace);
    if (known) return known;
    const type: TriggerType = {
      namespace,
      id,
      providers: [],
      triggers: new Set(),
      shared: new Map(),
      left: new Map(),
    };
    this.#types.set(keyOf(namespace, id), type);
    return type;
  }

  /** Forgets a type that means nothing any more. */
  closeIfEmpty(type: TriggerType): void {
    if (type.providers.length > 0 || type.triggers.size > 0) return;
    this.#types.delete(keyOf(type.namespace, type.id));
  }

  /** Types a worker provides, or would if others did not. */
  of(peer: Peer): readonly TriggerType[] {
    return [...this.#byPeer.get(peer) ?? []];
  }

  /** Makes a worker the one that serves a type. */
  addProvider(type: TriggerType, provider: Provider): void {
    this.removeProvider(type, provider.peer);
    type.providers.push(provider);
    const own = this.#byPeer.get(provider.peer);
    if (own) own.add(type);
    else this.#byPeer.set(provider.peer, new Set([type]));
  }

  /** Takes a worker from those that offer a type. */
  removeProvider(type: TriggerType, peer: Peer): void {
    const at = type.providers.findIndex((provider) => provider.peer === peer);
    if (at < 0) return;
    type.providers.splice(at, 1);
    const own = this.#byPeer.get(peer)!;
    own.delete(type);
    if (own.size === 0) this.#byPeer.delete(peer);
  }
}

function keyOf(namespace: string, id: string): string {
  return JSON.stringify([namespace, id]);
}
