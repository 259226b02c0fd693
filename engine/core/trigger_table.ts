/**
 * Triggers by type and target, and what their providers were told of them.
 *
 * A trigger is parked (nobody provides its type), offered (its provider was given it and did not
 * say no) or refused. What a provider holds is a *delivery*: of one trigger, or, for types of the
 * engine itself, of equal triggers of several workers, which fire once. Each delivery that was
 * given to a provider and is to end there is taken back with exactly one `unregistertrigger`.
 *
 * A worker that is restarted may leave its triggers until it has registered them again. An equal
 * one with the same id takes the place of the old one. With another id it joins the delivery, for
 * types of the engine; for others, where each trigger is a delivery of its owned, it is offered and
 * then the old one ends, so that nothing is missed and at most one thing seen twice.
 *
 * @module
 */
import { encodeMessage } from "../../sdk/typescript/wire/codec.ts";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import {
  DEFAULT_NAMESPACE,
  type ErrorBody,
  type Json,
  type RegisterTrigger,
  type RegisterTriggerType,
  type TriggerRegistrationResult,
} from "../../sdk/typescript/wire/protocol.ts";
import type { Peer } from "./peer.ts";

/** Hears what a provider said of a trigger: an error, or nothing bad. */
export type OnSettled = (error: ErrorBody | undefined) => void;

/** What a worker asked for. */
export interface Trigger {
  readonly registration: RegisterTrigger;
  /** Who asked for it; over, while its worker is being restarted. */
  readonly owner: Peer;
  readonly type: TriggerType;
  /** The frame for its provider. */
  readonly frame: string;
  /** Equal for triggers that say the same. */
  readonly dedupeKey: string;
  /** What its provider holds of it; `undefined`: it is parked. */
  delivery: Delivery | undefined;
  /** Told once, of the first word of the provider. */
  onSettled: OnSettled | undefined;
}

/** What a provider holds. */
export interface Delivery {
  /** The id under which it was given the trigger: that of a member, or of one that was. */
  id: string;
  readonly provider: Peer;
  readonly type: TriggerType;
  /** The triggers it stands for, by owner: thousands of workers may ask for the same. */
  readonly members: Map<Peer, Trigger>;
  /** The provider said no and holds nothing. */
  isRefused: boolean;
}

/** The triggers. */
export class TriggerTable {
  readonly types: TriggerTypes = new TriggerTypes();
  readonly #parked: (trigger: Trigger) => void;
  readonly #byId = new Map<string, Trigger>();
  readonly #byOwner = new Map<Peer, Set<Trigger>>();
  /** By the id that the provider knows. */
  readonly #deliveries = new Map<string, Delivery>();

  /** Makes an empty one; `parked` hears of each trigger that comes to wait for its type. */
  constructor(parked: (trigger: Trigger) => void) {
    this.#parked = parked;
  }

  /** All triggers. */
  all(): Iterable<Trigger> {
    return this.#byId.values();
  }

  /** The trigger with that id. */
  find(id: string): Trigger | undefined {
    return this.#byId.get(id);
  }

  /** Triggers and types a worker holds. */
  countOf(peer: Peer): number {
    return (this.#byOwner.get(peer)?.size ?? 0) + this.types.of(peer).length;
  }

  /** Triggers a worker asked for. */
  triggersOf(peer: Peer): number {
    return this.#byOwner.get(peer)?.size ?? 0;
  }

  /**
   * Adds a trigger and offers it to its provider, if there is one. Another one with the same id
   * ends first, unless it was orphans to this one.
   *
   * @throws {EngineError} `serialization_error` when it is nested too deeply to be written.
   */
  add(owner: Peer, registration: RegisterTrigger, onSettled?: OnSettled): void {
    const frame = frameOf(registration);
    const dedupeKey = dedupeKeyOf(registration);
    const before = this.#byId.get(registration.id);
    const delivery = before && canTakeOver(owner, before, registration, dedupeKey)
      ? before.delivery
      : undefined;
    if (before && delivery) before.delivery = undefined;
    if (before) this.#end(before);

    const type = this.types.open(registration.trigger_type, registration.trigger_namespace);
    const trigger: Trigger = { registration, owner, type, frame, dedupeKey, delivery, onSettled };
    this.#byId.set(registration.id, trigger);
    const owned = this.#byOwner.get(owner);
    if (owned) owned.add(trigger);
    else this.#byOwner.set(owner, new Set([trigger]));
    type.triggers.add(trigger);
    if (before && delivery) {
      delivery.members.delete(before.owner);
      delivery.members.set(owner, trigger);
    } else if (type.providers.length > 0) this.#deliver(trigger);
    else this.#parked(trigger);
    if (!before) this.#endEqualOrphan(trigger);
    // Nobody is going to be asked.
    if (delivery || type.providers.length === 0) settle(trigger, undefined);
  }

  /** Ends a trigger of a worker; `false` when it has none with that id. */
  remove(owner: Peer, id: string): boolean {
    const trigger = this.#byId.get(id);
    if (trigger?.owner !== owner) return false;
    this.#end(trigger);
    return true;
  }

  /** A worker has orphans and is to come back: its triggers stay, until removeOwner(). */
  orphan(owner: Peer): void {
    for (const trigger of [...this.#byOwner.get(owner) ?? []]) {
      const { type: { orphans }, dedupeKey } = trigger;
      if (trigger.onSettled) this.#end(trigger); // Its id was never told to anybody.
      else if (orphans.has(dedupeKey)) orphans.get(dedupeKey)!.add(trigger);
      else orphans.set(dedupeKey, new Set([trigger]));
    }
  }

  /** A worker has orphans: its triggers end. */
  removeOwner(owner: Peer): void {
    for (const trigger of [...this.#byOwner.get(owner) ?? []]) this.#end(trigger);
  }

  /** A worker serves a type from now on; `false` when the engine does so itself. */
  addProvider(peer: Peer, registration: RegisterTriggerType): boolean {
    const type = this.types.open(registration.id, registration.namespace);
    const active = type.providers.at(-1)?.peer;
    if (active?.isBuiltin && !peer.isBuiltin) return false;
    // A provider that says it anew is sent its triggers anew; another one gives them up.
    if (active && active !== peer) this.#withdraw(type);
    this.#park(type);
    this.types.addProvider(type, { peer, registration });
    for (const trigger of type.triggers) this.#deliver(trigger);
    return true;
  }

  /** A worker no longer serves a type; `false` when it did not offer to. */
  removeProvider(peer: Peer, id: string, namespace?: string): boolean {
    const type = this.types.find(id, namespace);
    if (!type?.providers.some((provider) => provider.peer === peer)) return false;
    const wasActive = type.providers.at(-1)!.peer === peer;
    this.types.removeProvider(type, peer);
    if (wasActive) {
      this.#park(type);
      const isServed = type.providers.length > 0;
      for (const trigger of type.triggers) {
        if (isServed) this.#deliver(trigger);
        else this.#parked(trigger);
      }
    }
    this.types.closeIfEmpty(type);
    return true;
  }

  /** A worker has orphans: others serve its types, or nobody does. */
  removeProviderOfAll(peer: Peer): void {
    for (const { id, namespace } of this.types.of(peer)) this.removeProvider(peer, id, namespace);
  }

  /** A provider says how it went; nobody else can. Whether that changed anything. */
  answer(from: Peer, { id, error }: TriggerRegistrationResult): boolean {
    const delivery = this.#deliveries.get(id);
    if (delivery?.provider !== from) return false;
    const wasRefused = delivery.isRefused;
    delivery.isRefused = error !== undefined;
    for (const trigger of [...delivery.members.values()]) {
      const { id, trigger_type, function_id } = trigger.registration;
      if (error && !trigger.onSettled) {
        const type = "triggerregistrationresult";
        trigger.owner.send({ type, id, trigger_type, function_id, error });
      }
      settle(trigger, error);
    }
    return wasRefused !== (error !== undefined);
  }

  /** The word of a trigger's provider is waited for no longer: no word counts as nothing bad. */
  settle(id: string): void {
    const trigger = this.#byId.get(id);
    if (trigger) settle(trigger, undefined);
  }

  /** Where no triggers are merged, an equal one that was orphans ends when a new one is there. */
  #endEqualOrphan({ type: { orphans, providers }, dedupeKey }: Trigger): void {
    if (orphans.size === 0 || providers.at(-1)?.peer.isBuiltin) return;
    const [old] = orphans.get(dedupeKey) ?? [];
    if (old) this.#end(old);
  }

  #deliver(trigger: Trigger): void {
    const { type, dedupeKey, owner, registration } = trigger;
    const provider = type.providers.at(-1)!.peer;
    const equal = provider.isBuiltin ? type.shared.get(dedupeKey) : undefined;
    const known = equal?.find((delivery) => !delivery.isRefused && !delivery.members.has(owner));
    if (known) {
      known.members.set(owner, trigger);
      trigger.delivery = known;
      settle(trigger, undefined);
      return;
    }
    this.#freeId(registration.id);
    const { id } = registration;
    const delivery = { id, provider, type, members: new Map([[owner, trigger]]), isRefused: false };
    trigger.delivery = delivery;
    this.#deliveries.set(delivery.id, delivery);
    if (equal) equal.push(delivery);
    else if (provider.isBuiltin) type.shared.set(dedupeKey, [delivery]);
    if (provider.isLive) provider.connection.send(trigger.frame);
  }

  /**
   * Makes an id free to be given to a provider. One that outlived the trigger it came from, because
   * equal triggers of others live on, is exchanged for the id of one of those.
   */
  #freeId(id: string): void {
    const delivery = this.#deliveries.get(id);
    if (!delivery) return;
    const [heir] = delivery.members.values().take(1).toArray() as [Trigger];
    this.#takeBack(delivery);
    this.#deliveries.delete(id);
    this.#freeId(heir.registration.id);
    delivery.id = heir.registration.id;
    this.#deliveries.set(delivery.id, delivery);
    if (!delivery.isRefused && delivery.provider.isLive) {
      delivery.provider.connection.send(heir.frame);
    }
  }

  #end(trigger: Trigger): void {
    const { registration, owner, type, delivery } = trigger;
    this.#byId.delete(registration.id);
    const owned = this.#byOwner.get(owner)!;
    owned.delete(trigger);
    if (owned.size === 0) this.#byOwner.delete(owner);
    type.triggers.delete(trigger);
    const orphans = type.orphans.get(trigger.dedupeKey);
    if (orphans?.delete(trigger) && orphans.size === 0) type.orphans.delete(trigger.dedupeKey);
    if (delivery) {
      delivery.members.delete(owner);
      if (delivery.members.size === 0) this.#endDelivery(delivery, trigger.dedupeKey);
    }
    this.types.closeIfEmpty(type);
    settle(trigger, undefined);
  }

  #endDelivery(delivery: Delivery, dedupeKey: string): void {
    this.#takeBack(delivery);
    this.#deliveries.delete(delivery.id);
    const { shared } = delivery.type;
    const rest = shared.get(dedupeKey)?.filter((other) => other !== delivery) ?? [];
    if (rest.length > 0) shared.set(dedupeKey, rest);
    else shared.delete(dedupeKey);
  }

  #takeBack({ id, provider, type, isRefused }: Delivery): void {
    if (!isRefused) provider.send({ type: "unregistertrigger", id, trigger_type: type.id });
  }

  /** Takes everything back from the provider of a type. */
  #withdraw(type: TriggerType): void {
    const deliveries = new Set([...type.triggers].map((trigger) => trigger.delivery));
    for (const delivery of deliveries) if (delivery) this.#takeBack(delivery);
  }

  /** Nobody holds the triggers of a type any more. */
  #park(type: TriggerType): void {
    for (const trigger of type.triggers) {
      if (trigger.delivery) this.#deliveries.delete(trigger.delivery.id);
      trigger.delivery = undefined;
      settle(trigger, undefined);
    }
    type.shared.clear();
  }
}

/** Whether a trigger waits for its worker to come back and is what that now registers again. */
function canTakeOver(
  owner: Peer,
  { owner: before, type, dedupeKey, delivery }: Trigger,
  { trigger_type, trigger_namespace = DEFAULT_NAMESPACE }: RegisterTrigger,
  newDedupeKey: string,
): boolean {
  return !before.isLive && delivery !== undefined && !delivery.isRefused &&
    type.id === trigger_type && type.namespace === trigger_namespace &&
    dedupeKey === newDedupeKey &&
    !delivery.members.has(owner);
}

function settle(trigger: Trigger, error: ErrorBody | undefined): void {
  const { onSettled } = trigger;
  trigger.onSettled = undefined;
  onSettled?.(error);
}

/** What a provider is sent: namespaces only where they say something. */
function frameOf({ namespace, trigger_namespace, ...rest }: RegisterTrigger): string {
  const message: RegisterTrigger = { ...rest, config: rest.config ?? {} };
  if (namespace !== undefined && namespace !== DEFAULT_NAMESPACE) message.namespace = namespace;
  if (trigger_namespace !== undefined && trigger_namespace !== DEFAULT_NAMESPACE) {
    message.trigger_namespace = trigger_namespace;
  }
  return encodeMessage(message);
}

/** Equal for equal target, config and metadata, in whatever order their keys were written. */
function dedupeKeyOf(registration: RegisterTrigger): string {
  const { function_id, namespace = DEFAULT_NAMESPACE, config = {}, metadata } = registration;
  try {
    return JSON.stringify([namespace, function_id, config, metadata], (_key, value: Json) => {
      if (value === null || typeof value !== "object" || Array.isArray(value)) return value;
      return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
    });
  } catch (cause) { // Only depth can do that: it came as JSON.
    const message = `Trigger ${registration.id} is nested too deeply to be kept`;
    throw new EngineError("serialization_error", message, { cause });
  }
}

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
  /** What an owned worker of the engine was given, by what it says: PROTOCOL 4.1 rule 9. */
  readonly shared: Map<string, Delivery[]>;
  /** Triggers whose worker has orphans and is to come back, by what they say. */
  readonly orphans: Map<string, Set<Trigger>>;
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
      orphans: new Map(),
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
    const owned = this.#byPeer.get(provider.peer);
    if (owned) owned.add(type);
    else this.#byPeer.set(provider.peer, new Set([type]));
  }

  /** Takes a worker from those that offer a type. */
  removeProvider(type: TriggerType, peer: Peer): void {
    const at = type.providers.findIndex((provider) => provider.peer === peer);
    if (at < 0) return;
    type.providers.splice(at, 1);
    const owned = this.#byPeer.get(peer)!;
    owned.delete(type);
    if (owned.size === 0) this.#byPeer.delete(peer);
  }
}

function keyOf(namespace: string, id: string): string {
  return JSON.stringify([namespace, id]);
}
