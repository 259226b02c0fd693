/**
 * Triggers and trigger types, and what the providers hold of them.
 *
 * A trigger is parked (its type has no provider), offered (its provider received it and did not
 * refuse) or refused. What a provider holds is a *delivery*: of one trigger or, for types of
 * built-in workers, of equal triggers of several workers, which fire once. Each delivery that a
 * provider received and that ends there is withdrawn with exactly one `unregistertrigger`.
 *
 * Several workers may provide one type; the newest one serves it, the one before takes over when
 * that disconnects, and built-in workers are never displaced.
 *
 * The triggers of a worker that is being restarted are *orphaned* until the worker registers them
 * again. An equal trigger with the same id takes over the delivery of the orphaned one. With
 * another id it joins the delivery, for types of built-in workers; for other types, where each
 * trigger is a delivery of its own, the new one is delivered before the orphaned one ends, so that
 * no event is missed and at most one is seen twice.
 *
 * @module
 */
import { encodeMessage } from "../../sdk/typescript/wire/codec.ts";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import { LargeMap } from "../../sdk/typescript/wire/large_map.ts";
import { SmallMap } from "../../sdk/typescript/wire/small_map.ts";
import {
  DEFAULT_NAMESPACE,
  type ErrorBody,
  type Json,
  type RegisterTrigger,
  type RegisterTriggerType,
  type TriggerRegistrationResult,
} from "../../sdk/typescript/wire/protocol.ts";
import { EqualDeliveries } from "./equal_deliveries.ts";
import type { Peer } from "./peer.ts";
import { type Holding, NO_HOLDING, Registrations } from "./registrations.ts";

/** Triggers and trigger types that one worker may register. */
export const TRIGGERS_PER_WORKER_MAX = 10_000;
/** The same for another engine, for all its workers. */
export const TRIGGERS_PER_ENGINE_MAX = 100_000;
/** Characters that are kept of a provider's reason to refuse a trigger. */
const REFUSAL_CHARS_MAX = 500;

/** Receives the provider's first reply to a trigger: an error, or `undefined` for success. */
export type OnSettled = (error: ErrorBody | undefined) => void;

/** A registered trigger. */
export interface Trigger {
  readonly id: string;
  readonly type: TriggerType;
  readonly function_id: string;
  readonly namespace: string | undefined;
  readonly metadata: Json | undefined;
  readonly config: Json | undefined;
  /** The worker that registered it; disconnected while it is being restarted. */
  readonly owner: Peer;
  readonly holding: Holding;
  /** Larger than those of triggers that were registered before. */
  readonly ordinal: number;
  /** Equal for triggers with equal function, config and metadata. */
  readonly dedupeKey: string;
  /** What the provider holds of it; `undefined` while it is parked. */
  delivery: Delivery | undefined;
  /** Called once, with the provider's first reply. */
  onSettled: OnSettled | undefined;
}

/** What a provider holds. */
export interface Delivery {
  /** The id that the provider knows: that of a member, or of a former one. */
  id: string;
  readonly provider: Peer;
  readonly type: TriggerType;
  /** Its triggers, by owner: thousands of workers may register equal ones. */
  readonly members: SmallMap<Peer, Trigger>;
  /** The provider refused it and holds nothing. */
  isRefused: boolean;
  /** The provider's message, shortened; empty unless it refused. */
  refusal: string;
  /** Those of equal triggers, for types of built-in workers. */
  readonly equals: EqualDeliveries<Delivery> | undefined;
}

/** The registered triggers. */
export class TriggerTable {
  readonly types: TriggerTypes;
  readonly #parked: (trigger: Trigger) => void;
  readonly #byId = new LargeMap<Trigger>();
  readonly #byOwner = new Map<Peer, Set<Trigger>>();
  /** By the id that the provider knows. */
  readonly #deliveries = new LargeMap<Delivery>();
  readonly #registrations: Registrations;
  #ordinal = 0;
  #lastRefusal = "";

  /** `parked` is called for each trigger that is parked. */
  constructor(parked: (trigger: Trigger) => void, registrations = new Registrations()) {
    this.#parked = parked;
    this.#registrations = registrations;
    this.types = new TriggerTypes(registrations);
  }

  /** All triggers. */
  all(): Iterable<Trigger> {
    return this.#byId.values();
  }

  /** The trigger with that id. */
  find(id: string): Trigger | undefined {
    return this.#byId.get(id);
  }

  /** Number of triggers and types of a worker. */
  countOf(peer: Peer): number {
    return (this.#byOwner.get(peer)?.size ?? 0) + this.types.countOf(peer);
  }

  /** Number of triggers that a worker registered. */
  triggersOf(peer: Peer): number {
    return this.#byOwner.get(peer)?.size ?? 0;
  }

  /**
   * Adds a trigger and delivers it to its provider, if there is one. Another trigger with the same
   * id ends first, unless it is orphaned and the new one takes over its delivery. Returns the live
   * connection that loses its trigger to this one. What the trigger takes is released when it ends.
   *
   * @throws {EngineError} `trigger_registration_failed` when the id belongs to another worker,
   * `serialization_error` when it is nested too deeply to be encoded.
   */
  add(
    owner: Peer,
    registration: RegisterTrigger,
    onSettled?: OnSettled,
    holding: Holding = NO_HOLDING,
  ): Peer | undefined {
    const { id, trigger_type, trigger_namespace, function_id, namespace } = registration;
    const { metadata, config } = registration;
    const dedupeKey = dedupeKeyOf(registration);
    const before = this.#byId.get(id);
    const isOrphanEqual = before !== undefined && !before.owner.isLive &&
      isEqual(before, registration, dedupeKey);
    if (before && !isOrphanEqual) checkOwner(owner, before);
    const delivery = isOrphanEqual && canTakeOver(owner, before) ? before.delivery : undefined;
    if (before && delivery) before.delivery = undefined;
    if (before) this.#end(before);

    const type = this.types.open(trigger_type, trigger_namespace);
    const trigger: Trigger = {
      id,
      type,
      function_id,
      namespace,
      metadata,
      config,
      owner,
      holding,
      ordinal: this.#ordinal++,
      dedupeKey,
      delivery,
      onSettled,
    };
    this.#byId.set(id, trigger);
    const owned = this.#byOwner.get(owner);
    if (owned) owned.add(trigger);
    else this.#byOwner.set(owner, new Set([trigger]));
    type.triggers.set(id, trigger);
    if (before && delivery) {
      leave(delivery, before.owner);
      join(delivery, owner, trigger);
    } else if (type.providers.length > 0) this.#deliver(trigger);
    else this.#parked(trigger);
    if (!before) this.#endEqualOrphan(trigger);
    // No provider is asked.
    if (delivery || type.providers.length === 0) settle(trigger, undefined);
    return before && before.owner !== owner && before.owner.isLive ? before.owner : undefined;
  }

  /** Ends a trigger of a worker; `false` when it has none with that id. */
  remove(owner: Peer, id: string): boolean {
    const trigger = this.#byId.get(id);
    if (trigger?.owner !== owner) return false;
    this.#end(trigger);
    return true;
  }

  /** A worker that will come back disconnected: its triggers stay until removeOwner(). */
  orphan(owner: Peer): void {
    for (const trigger of [...this.#byOwner.get(owner) ?? []]) {
      const { type: { orphans }, dedupeKey } = trigger;
      if (trigger.onSettled) this.#end(trigger); // Its id was not sent to the worker yet.
      else if (orphans.has(dedupeKey)) orphans.get(dedupeKey)!.add(trigger);
      else orphans.set(dedupeKey, new Set([trigger]));
    }
  }

  /** Ends up to `max` triggers of a worker, and returns how many. */
  removeSome(owner: Peer, max: number): number {
    const some = this.#byOwner.get(owner)?.values().take(max).toArray() ?? [];
    for (const trigger of some) this.#end(trigger);
    return some.length;
  }

  /** Ends all triggers of a worker. */
  removeOwner(owner: Peer): void {
    for (const trigger of [...this.#byOwner.get(owner) ?? []]) this.#end(trigger);
  }

  /** Makes a worker the provider of a type; `false` when a built-in worker provides it. */
  addProvider(
    peer: Peer,
    registration: RegisterTriggerType,
    holding: Holding = NO_HOLDING,
  ): boolean {
    const type = this.types.open(registration.id, registration.namespace);
    const active = type.providers.at(-1)?.peer;
    if (peer.isEngine && active && active !== peer) {
      this.types.addProvider(type, { peer, registration, holding });
      return true; // It takes over when the others have left.
    }
    if (active?.isBuiltin && !peer.isBuiltin) {
      this.#registrations.release(peer, holding);
      return false;
    }
    // A provider that registers again gets its triggers again; a previous one loses them.
    if (active && active !== peer) this.#withdraw(type);
    this.#park(type);
    this.types.addProvider(type, { peer, registration, holding });
    for (const trigger of inOrder(type)) this.#deliver(trigger);
    return true;
  }

  /** Removes a provider; `false` when the worker did not provide the type. */
  removeProvider(peer: Peer, id: string, namespace?: string): boolean {
    const type = this.types.find(id, namespace);
    if (!type?.providers.some((provider) => provider.peer === peer)) return false;
    const wasActive = type.providers.at(-1)!.peer === peer;
    this.types.removeProvider(type, peer);
    if (wasActive) {
      // An engine whose provider has left keeps triggers for the next one.
      if (peer.isEngine) this.#withdraw(type);
      this.#park(type);
      const isServed = type.providers.length > 0;
      for (const trigger of inOrder(type)) {
        if (isServed) this.#deliver(trigger);
        else this.#parked(trigger);
      }
    }
    this.types.closeIfEmpty(type);
    return true;
  }

  /** A worker disconnected: the provider before it takes over its types, if there is one. */
  removeProviderOfAll(peer: Peer): void {
    for (const { id, namespace } of this.types.of(peer)) this.removeProvider(peer, id, namespace);
  }

  /** Handles a provider's reply; ignored from any other worker. `true` if the state changed. */
  answer(from: Peer, { id, error }: TriggerRegistrationResult): boolean {
    const delivery = this.#deliveries.get(id);
    if (delivery?.provider !== from) return false;
    const wasRefused = delivery.isRefused;
    delivery.isRefused = error !== undefined;
    delivery.refusal = error ? this.#refusalOf(error) : "";
    for (const trigger of [...delivery.members.values()]) {
      if (error && !trigger.onSettled) {
        const { id, type: { id: trigger_type }, function_id } = trigger;
        const type = "triggerregistrationresult";
        trigger.owner.send({ type, id, trigger_type, function_id, error });
      }
      settle(trigger, error);
    }
    return wasRefused !== (error !== undefined);
  }

  /** What is kept of a refusal; thousands of triggers may have the same one. */
  #refusalOf({ message }: ErrorBody): string {
    // A copy: a slice would keep the provider's whole frame in memory.
    const text = ` ${message.slice(0, REFUSAL_CHARS_MAX)}`.slice(1);
    if (text !== this.#lastRefusal) this.#lastRefusal = text;
    return this.#lastRefusal;
  }

  /** Stops waiting for the provider's reply: no reply counts as success. */
  settle(id: string): void {
    const trigger = this.#byId.get(id);
    if (trigger) settle(trigger, undefined);
  }

  /** For types without shared deliveries: a new trigger ends one equal orphaned trigger. */
  #endEqualOrphan({ type: { orphans, providers }, dedupeKey }: Trigger): void {
    if (orphans.size === 0 || providers.at(-1)?.peer.isBuiltin) return;
    const [old] = orphans.get(dedupeKey) ?? [];
    if (old) this.#end(old);
  }

  #deliver(trigger: Trigger): void {
    const { id, type, dedupeKey, owner } = trigger;
    const provider = type.providers.at(-1)!.peer;
    const equals = provider.isBuiltin ? equalsOf(type, dedupeKey) : undefined;
    const known = equals?.find(owner);
    if (known) {
      join(known, owner, trigger);
      trigger.delivery = known;
      settle(trigger, undefined);
      return;
    }
    this.#freeId(id);
    const delivery: Delivery = {
      id,
      provider,
      type,
      members: new SmallMap(),
      isRefused: false,
      refusal: "",
      equals,
    };
    equals?.add(delivery);
    join(delivery, owner, trigger);
    trigger.delivery = delivery;
    this.#deliveries.set(delivery.id, delivery);
    if (provider.isLive) provider.connection.send(frameFor(provider, trigger));
  }

  /**
   * Makes an id available for a delivery. If an older delivery still uses it, because equal
   * triggers outlived the one with that id, that delivery gets the id of one of those.
   */
  #freeId(id: string): void {
    const delivery = this.#deliveries.get(id);
    if (!delivery) return;
    const [first] = delivery.members.values();
    const heir = first!;
    this.#takeBack(delivery);
    this.#deliveries.delete(id);
    this.#freeId(heir.id);
    delivery.id = heir.id;
    this.#deliveries.set(delivery.id, delivery);
    if (!delivery.isRefused && delivery.provider.isLive) {
      delivery.provider.connection.send(frameFor(delivery.provider, heir));
    }
  }

  #end(trigger: Trigger): void {
    const { id, owner, type, delivery } = trigger;
    this.#byId.delete(id);
    this.#registrations.release(owner, trigger.holding);
    const owned = this.#byOwner.get(owner)!;
    owned.delete(trigger);
    if (owned.size === 0) this.#byOwner.delete(owner);
    type.triggers.delete(id);
    const orphans = type.orphans.get(trigger.dedupeKey);
    if (orphans?.delete(trigger) && orphans.size === 0) type.orphans.delete(trigger.dedupeKey);
    if (delivery) {
      leave(delivery, owner);
      if (delivery.members.size === 0) this.#endDelivery(delivery, trigger.dedupeKey);
    }
    this.types.closeIfEmpty(type);
    settle(trigger, undefined);
  }

  #endDelivery(delivery: Delivery, dedupeKey: string): void {
    this.#takeBack(delivery);
    this.#deliveries.delete(delivery.id);
    const { equals, type: { shared } } = delivery;
    equals?.remove(delivery);
    if (equals?.size === 0 && shared.get(dedupeKey) === equals) shared.delete(dedupeKey);
  }

  #takeBack({ id, provider, type, isRefused }: Delivery): void {
    if (!isRefused) provider.send({ type: "unregistertrigger", id, trigger_type: type.id });
  }

  /** Withdraws all deliveries from the provider of a type. */
  #withdraw(type: TriggerType): void {
    const deliveries = new Set(Array.from(type.triggers.values(), (trigger) => trigger.delivery));
    for (const delivery of deliveries) if (delivery) this.#takeBack(delivery);
  }

  /** Drops the deliveries of a type; its triggers are parked. */
  #park(type: TriggerType): void {
    for (const trigger of type.triggers.values()) {
      if (trigger.delivery) this.#deliveries.delete(trigger.delivery.id);
      trigger.delivery = undefined;
      settle(trigger, undefined);
    }
    type.shared.clear();
  }
}

/**
 * Checks that a worker may use the id of a trigger: ids belong to the name of the worker that
 * registered them, until the last trigger with that id ends.
 *
 * @throws {EngineError} `trigger_registration_failed`, naming the owner unless access rules limit
 * the peer.
 */
function checkOwner(peer: Peer, { owner, id }: Trigger): void {
  if (owner === peer || peer.hasNameOf(owner)) return;
  if (peer.isLimited) {
    const message = `Trigger ${id} belongs to another worker; register it with another id`;
    throw new EngineError("trigger_registration_failed", message);
  }
  const name = owner.ownerName ?? null;
  const whose = name === null ? "a worker that has not announced itself" : `worker ${name}`;
  const message = `Trigger ${id} belongs to ${whose}; register it with another id`;
  const details = { owner: name, owner_worker_id: owner.id };
  throw new EngineError("trigger_registration_failed", message, { details });
}

/** The triggers of a type in the order in which they were registered. */
function inOrder({ triggers }: TriggerType): Trigger[] {
  return [...triggers.values()].sort((a, b) => a.ordinal - b.ordinal);
}

/** The deliveries of triggers with that key. */
function equalsOf({ shared }: TriggerType, dedupeKey: string): EqualDeliveries<Delivery> {
  const known = shared.get(dedupeKey);
  if (known) return known;
  const equals = new EqualDeliveries<Delivery>();
  shared.set(dedupeKey, equals);
  return equals;
}

function join({ members, equals }: Delivery, owner: Peer, trigger: Trigger): void {
  members.set(owner, trigger);
  equals?.joined(owner);
}

function leave({ members, equals }: Delivery, owner: Peer): void {
  members.delete(owner);
  equals?.left(owner);
}

/** Whether a registration is the same as that of a trigger. */
function isEqual(
  { type, dedupeKey }: Trigger,
  { trigger_type, trigger_namespace = DEFAULT_NAMESPACE }: RegisterTrigger,
  otherDedupeKey: string,
): boolean {
  return type.id === trigger_type && type.namespace === trigger_namespace &&
    dedupeKey === otherDedupeKey;
}

/** Whether an equal registration takes over the delivery of an orphaned trigger. */
function canTakeOver(owner: Peer, { delivery }: Trigger): boolean {
  return delivery !== undefined && !delivery.isRefused && !delivery.members.has(owner);
}

function settle(trigger: Trigger, error: ErrorBody | undefined): void {
  const { onSettled } = trigger;
  trigger.onSettled = undefined;
  onSettled?.(error);
}

/**
 * The frame of a trigger, with the name by which its provider knows the type; default namespaces
 * are omitted. It is encoded for each provider: kept, it would be the largest part of a trigger.
 */
function frameFor({ access }: Peer, trigger: Trigger): string {
  const { id, type, function_id, namespace, metadata, config = {} } = trigger;
  const trigger_type = type.id;
  const message: RegisterTrigger = { type: "registertrigger", id, trigger_type, function_id };
  if (namespace !== undefined && namespace !== DEFAULT_NAMESPACE) message.namespace = namespace;
  if (type.namespace !== DEFAULT_NAMESPACE) message.trigger_namespace = type.namespace;
  if (metadata !== undefined) message.metadata = metadata;
  message.config = config;
  return encodeMessage(access?.renamesTypes ? access.outgoing(message) : message);
}

/** Key that is equal for equal function, config and metadata, independent of the order of keys. */
function dedupeKeyOf(registration: RegisterTrigger): string {
  const { function_id, namespace = DEFAULT_NAMESPACE, config = {}, metadata } = registration;
  try {
    return JSON.stringify([namespace, function_id, sorted(config), sorted(metadata)]);
  } catch (cause) { // Only the depth can cause this: the value came as JSON.
    const message = `Trigger ${registration.id} is nested too deeply to be kept`;
    throw new EngineError("serialization_error", message, { cause });
  }
}

/** The value with the keys of all its objects in order: itself, where they are. */
function sorted(value: Json | undefined): Json | undefined {
  if (value === null || typeof value !== "object") return value;
  if (Array.isArray(value)) return value.map((item) => sorted(item)!);
  const entries = Object.entries(value);
  if (entries.every(([, each]) => each === null || typeof each !== "object") && isSorted(entries)) {
    return value;
  }
  entries.sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([key, each]) => [key, sorted(each)!]));
}

function isSorted(entries: readonly (readonly [key: string, value: unknown])[]): boolean {
  return entries.every(([key], i) => i === 0 || entries[i - 1]![0] < key);
}

/** A worker that provides a type. */
export interface Provider {
  readonly peer: Peer;
  readonly registration: RegisterTriggerType;
  readonly holding: Holding;
}

/** A type with a provider, or with triggers that wait for one. */
export interface TriggerType {
  readonly namespace: string;
  readonly id: string;
  /** The last one serves the type, other engines come first; empty without a provider. */
  readonly providers: Provider[];
  /** All triggers of the type, by id. */
  readonly triggers: LargeMap<Trigger>;
  /** Deliveries that a built-in provider holds, by dedupe key: PROTOCOL 4.1 rule 9. */
  readonly shared: LargeMap<EqualDeliveries<Delivery>>;
  /** Triggers whose worker has disconnected and will come back, by dedupe key. */
  readonly orphans: Map<string, Set<Trigger>>;
}

/** The known trigger types. */
export class TriggerTypes {
  readonly #types = new Map<string, TriggerType>();
  readonly #byPeer = new Map<Peer, Set<TriggerType>>();
  readonly #registrations: Registrations;

  constructor(registrations: Registrations = new Registrations()) {
    this.#registrations = registrations;
  }

  /** All types, including those without a provider. */
  all(): Iterable<TriggerType> {
    return this.#types.values();
  }

  /** The type with that id, if it is known. */
  find(id: string, namespace: string = DEFAULT_NAMESPACE): TriggerType | undefined {
    return this.#types.get(keyOf(namespace, id));
  }

  /** The type with that id, created if necessary. */
  open(id: string, namespace: string = DEFAULT_NAMESPACE): TriggerType {
    const known = this.find(id, namespace);
    if (known) return known;
    const type: TriggerType = {
      namespace,
      id,
      providers: [],
      triggers: new LargeMap(),
      shared: new LargeMap(),
      orphans: new Map(),
    };
    this.#types.set(keyOf(namespace, id), type);
    return type;
  }

  /** Removes a type that has neither provider nor triggers. */
  closeIfEmpty(type: TriggerType): void {
    if (type.providers.length > 0 || type.triggers.size > 0) return;
    this.#types.delete(keyOf(type.namespace, type.id));
  }

  /** The types that a worker provides, including those that a newer provider serves. */
  of(peer: Peer): readonly TriggerType[] {
    return [...this.#byPeer.get(peer) ?? []];
  }

  /** Number of types that a worker provides. */
  countOf(peer: Peer): number {
    return this.#byPeer.get(peer)?.size ?? 0;
  }

  /** What a worker's registration of a type takes; `undefined` when it has none. */
  holdingOf(peer: Peer, id: string, namespace?: string): Holding | undefined {
    return this.find(id, namespace)?.providers.find((one) => one.peer === peer)?.holding;
  }

  /** Makes a worker the newest provider of a type; an engine goes behind all others. */
  addProvider(type: TriggerType, provider: Provider): void {
    this.removeProvider(type, provider.peer);
    if (provider.peer.isEngine) type.providers.unshift(provider);
    else type.providers.push(provider);
    const owned = this.#byPeer.get(provider.peer);
    if (owned) owned.add(type);
    else this.#byPeer.set(provider.peer, new Set([type]));
  }

  /** Removes a worker from the providers of a type. */
  removeProvider(type: TriggerType, peer: Peer): void {
    const at = type.providers.findIndex((provider) => provider.peer === peer);
    if (at < 0) return;
    const [{ holding }] = type.providers.splice(at, 1) as [Provider];
    this.#registrations.release(peer, holding);
    const owned = this.#byPeer.get(peer)!;
    owned.delete(type);
    if (owned.size === 0) this.#byPeer.delete(peer);
  }
}

function keyOf(namespace: string, id: string): string {
  return JSON.stringify([namespace, id]);
}
