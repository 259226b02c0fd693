/**
 * Read-only views of the core's tables.
 *
 * A view is built when it is requested; nothing is kept up to date in between.
 *
 * @module
 */
import {
  DEFAULT_NAMESPACE,
  type Json,
  type JsonObject,
  type RegisterFunction,
} from "../../sdk/typescript/wire/protocol.ts";
import { similarNames } from "../../sdk/typescript/wire/similar.ts";
import type { CallSource } from "../ports/call_observer.ts";
import type {
  Directory,
  FunctionFilter,
  FunctionView,
  TriggerTypeView,
  TriggerView,
  WorkerView,
} from "../ports/directory.ts";
import type { RouterLoad } from "../ports/telemetry.ts";
import type { Absences } from "../ports/absences.ts";
import { CORE_FUNCTIONS } from "./core_functions.ts";
import type { NameGuard } from "./name_guard.ts";
import { compareEntries, type FunctionEntry, type FunctionTable } from "./function_table.ts";
import type { Peer } from "./peer.ts";
import type { Trigger, TriggerTable, TriggerType } from "./trigger_table.ts";

/** Unknown trigger types of one listing for which a similar one is looked for. */
const TYPE_SEARCHES_MAX = 20;
/** Known types that an unknown one is compared with. */
const TYPES_COMPARED_MAX = 200;
/** Characters of an unknown type in a reason. */
const TYPE_CHARS_SHOWN = 128;

/** The tables to read. */
export interface DirectorySources {
  readonly functions: FunctionTable;
  readonly triggers: TriggerTable;
  /** By worker id. */
  readonly peers: ReadonlyMap<string, { readonly peer: Peer }>;
  readonly absences: Absences;
  readonly names: NameGuard;
  isDraining(): boolean;
}

/** A {@linkcode Directory} of the current registrations. */
export class LiveDirectory implements Directory {
  readonly #sources: DirectorySources;

  constructor(sources: DirectorySources) {
    this.#sources = sources;
  }

  functions(): FunctionView[] {
    const views = Array.from(this.#sources.functions.entries(), (each) => this.#viewOf(each));
    return [...views, ...this.#coreFunctions()];
  }

  builtinFunctions(): FunctionView[] {
    const { peers, functions } = this.#sources;
    const views: FunctionView[] = [];
    for (const { peer } of peers.values()) {
      if (peer.isBuiltin) {
        views.push(...functions.entriesOf(peer).map((each) => this.#viewOf(each)));
      }
    }
    return [...views, ...this.#coreFunctions()];
  }

  #coreFunctions(): FunctionView[] {
    return [...CORE_FUNCTIONS.keys()]
      .filter((id) => !this.#sources.functions.find(id))
      .map(viewOfCoreFunction);
  }

  *functionsAfter(function_id: string, namespace: string): Generator<FunctionView> {
    const { functions } = this.#sources;
    const entries = functions.sorted();
    const last = { id: function_id, namespace };
    const own = [...CORE_FUNCTIONS.keys()]
      .map((id) => ({ id, namespace: DEFAULT_NAMESPACE }))
      .filter((each) => !functions.find(each.id) && compareEntries(each, last) > 0)
      .sort(compareEntries);
    for (let at = firstBehind(entries, last); at < entries.length; at++) {
      const entry = entries[at]!;
      while (own.length > 0 && compareEntries(own[0]!, entry) < 0) {
        yield viewOfCoreFunction(own.shift()!.id);
      }
      yield new EntryView(entry, this.#sources.names);
    }
    yield* own.map(({ id }) => viewOfCoreFunction(id));
  }

  functionsMark(): string {
    return this.#sources.functions.mark;
  }

  function(namespace: string, function_id: string): FunctionView | undefined {
    const entry = this.#sources.functions.find(function_id, namespace);
    if (entry) return this.#viewOf(entry);
    const isCore = namespace === DEFAULT_NAMESPACE && CORE_FUNCTIONS.has(function_id);
    return isCore ? viewOfCoreFunction(function_id) : undefined;
  }

  isInternal(namespace: string, function_id: string): boolean {
    const entry = this.#sources.functions.find(function_id, namespace);
    return isInternal(entry?.replicas.at(-1)?.registration.metadata);
  }

  visibleTo(worker_id: string | undefined): FunctionFilter | undefined {
    const access = this.#sources.peers.get(worker_id ?? "")?.peer.access;
    if (!access || access.mayCallAll) return undefined;
    return (function_id, namespace) => {
      const replicas = this.#sources.functions.find(function_id, namespace)?.replicas ?? [];
      const metadata = replicas.map(({ registration }) => registration.metadata);
      return access.mayCall({ function_id, namespace, metadata });
    };
  }

  functionsOf(worker_id: string): FunctionView[] {
    const peer = this.#sources.peers.get(worker_id)?.peer;
    const entries = peer ? this.#sources.functions.entriesOf(peer) : [];
    return entries.map((each) => this.#viewOf(each));
  }

  triggerTypes(): TriggerTypeView[] {
    return Array.from(this.#sources.triggers.types.all(), viewOfType).filter((view) => !!view);
  }

  triggerType(namespace: string, id: string): TriggerTypeView | undefined {
    const type = this.#sources.triggers.types.find(id, namespace);
    return type && viewOfType(type);
  }

  triggers(): TriggerView[] {
    const reasons = new TriggerReasons(this.#sources);
    return Array.from(this.#sources.triggers.all(), (each) => viewOfTrigger(each, reasons));
  }

  trigger(id: string): TriggerView | undefined {
    const trigger = this.#sources.triggers.find(id);
    return trigger && viewOfTrigger(trigger, new TriggerReasons(this.#sources));
  }

  workers(): WorkerView[] {
    return Array.from(this.#sources.peers.values(), ({ peer }) => this.#viewOfPeer(peer));
  }

  worker(id: string): WorkerView | undefined {
    const entry = this.#sources.peers.get(id);
    return entry && this.#viewOfPeer(entry.peer);
  }

  #viewOf(entry: FunctionEntry): FunctionView {
    return viewOfEntry(entry, this.#sources.names.contenders(entry));
  }

  #viewOfPeer(peer: Peer): WorkerView {
    const { announcement: announced, info } = peer;
    return {
      id: peer.id,
      name: info.builtin ?? announced?.name ?? null,
      namespace: announced?.namespace ?? null,
      description: announced?.description ?? null,
      version: announced?.version ?? null,
      runtime: announced?.runtime ?? null,
      os: announced?.os ?? null,
      pid: announced?.pid || null,
      isolation: announced?.isolation ?? null,
      launch_id: info.launch_id,
      status: peer.isDraining || this.#sources.isDraining() ? "draining" : "connected",
      suspect: peer.isSuspect,
      announced: announced !== undefined,
      builtin: peer.isBuiltin,
      ...engineOf(peer),
      operator: info.operator ?? false,
      function_count: this.#sources.functions.countOf(peer),
      trigger_count: this.#sources.triggers.triggersOf(peer),
      connected_at_ms: peer.connected_at_ms,
      active_invocations: peer.runningCalls,
      queued_bytes: peer.connection.queuedBytes,
      ip_address: info.address,
    };
  }
}

/** The router's side of a {@linkcode CallObserver}. */
export function callSourceOf(
  calls: { readonly size: number; idOf(slot: number, uses: number): string },
  parked: { readonly size: number },
  peers: DirectorySources["peers"],
): CallSource {
  const load = (): RouterLoad => {
    let queued_bytes = 0;
    for (const { peer } of peers.values()) queued_bytes += peer.connection.queuedBytes;
    return { running: calls.size, parked: parked.size, connections: peers.size, queued_bytes };
  };
  return { callId: (slot, uses) => calls.idOf(slot, uses), load };
}

function viewOfEntry(
  { namespace, id, replicas }: FunctionEntry,
  contenders: readonly string[],
): FunctionView {
  const { peer, registration } = replicas.at(-1)!;
  const { description, request_format, response_format, metadata, invocation } = registration;
  return {
    function_id: id,
    namespace,
    worker_id: peer.id,
    worker_name: peer.nameFor(id),
    ...(description === undefined ? {} : { description }),
    ...(request_format === undefined ? {} : { request_schema: request_format }),
    ...(response_format === undefined ? {} : { response_schema: response_format }),
    ...(metadata === undefined ? {} : { metadata }),
    ...(invocation === undefined ? {} : { invocation }),
    internal: isInternal(metadata),
    builtin: peer.isBuiltin,
    ...engineOf(peer),
    worker_ids: replicas.map((replica) => replica.peer.id),
    ...contenders.length > 0 && { contenders },
  };
}

/** Index of the first of some sorted entries that is behind `last`. */
function firstBehind(
  entries: readonly FunctionEntry[],
  last: Pick<FunctionEntry, "id" | "namespace">,
): number {
  let [low, high] = [0, entries.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (compareEntries(entries[middle]!, last) > 0) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** A view whose members are read on demand: most functions of a search are passed over. */
class EntryView implements FunctionView {
  readonly #entry: FunctionEntry;
  readonly #peer: Peer;
  readonly #registration: RegisterFunction;
  readonly #names: NameGuard;

  constructor(entry: FunctionEntry, names: NameGuard) {
    this.#names = names;
    const { peer, registration } = entry.replicas.at(-1)!;
    this.#entry = entry;
    this.#peer = peer;
    this.#registration = registration;
  }

  get function_id(): string {
    return this.#entry.id;
  }

  get namespace(): string {
    return this.#entry.namespace;
  }

  get worker_id(): string {
    return this.#peer.id;
  }

  get worker_name(): string {
    return this.#peer.nameFor(this.#entry.id);
  }

  // Absent members are `undefined` here, which lists leave out.
  get description(): string {
    return this.#registration.description!;
  }

  get metadata(): Json {
    return this.#registration.metadata!;
  }

  get invocation(): JsonObject {
    return this.#registration.invocation!;
  }

  get internal(): boolean {
    return isInternal(this.#registration.metadata);
  }

  get builtin(): boolean {
    return this.#peer.isBuiltin;
  }

  get engine(): string {
    return this.#peer.info.engine!;
  }

  get worker_ids(): readonly string[] {
    return this.#entry.replicas.map(({ peer }) => peer.id);
  }

  get contenders(): readonly string[] {
    return this.#names.contenders(this.#entry);
  }
}

function viewOfCoreFunction(function_id: string): FunctionView {
  return {
    function_id,
    namespace: DEFAULT_NAMESPACE,
    worker_id: "engine",
    worker_name: "engine",
    description: CORE_FUNCTIONS.get(function_id)!,
    internal: false,
    builtin: true,
    worker_ids: [],
  };
}

/** `undefined` for a type without a provider. */
function viewOfType(
  { namespace, id, providers, triggers }: TriggerType,
): TriggerTypeView | undefined {
  const provider = providers.at(-1);
  if (!provider) return undefined;
  const { peer, registration } = provider;
  const { description, trigger_request_format, call_request_format } = registration;
  return {
    id,
    namespace,
    worker_id: peer.id,
    worker_name: peer.nameFor(id),
    description,
    ...(trigger_request_format === undefined
      ? {}
      : { configuration_schema: trigger_request_format }),
    ...(call_request_format === undefined ? {} : { request_schema: call_request_format }),
    builtin: peer.isBuiltin,
    ...engineOf(peer),
    instance_count: triggers.size,
  };
}

/** Why triggers do not fire, for one listing. */
class TriggerReasons {
  readonly #sources: DirectorySources;
  /** By namespace and type. */
  readonly #parked = new Map<string, string>();
  #searchesLeft = TYPE_SEARCHES_MAX;

  constructor(sources: DirectorySources) {
    this.#sources = sources;
  }

  of({ delivery, type }: Trigger): string | null {
    if (delivery?.isRefused) return `its provider refused it: ${delivery.refusal}`;
    if (delivery) return null;
    const key = JSON.stringify([type.namespace, type.id]);
    const known = this.#parked.get(key);
    if (known !== undefined) return known;
    const reason = this.#ofType(type.id, type.namespace);
    this.#parked.set(key, reason);
    return reason;
  }

  #ofType(id: string, namespace: string): string {
    const absence = this.#sources.absences.ofTriggerType(id, namespace);
    const text = `no worker provides the trigger type ${id.slice(0, TYPE_CHARS_SHOWN)}`;
    if (absence) {
      const { reason, command } = absence;
      return `${text}: ${reason}${command === undefined ? "" : `; to fix it: ${command}`}`;
    }
    const [nearest] = this.#searchesLeft-- > 0 ? similarNames(id, this.#types(namespace)) : [];
    return nearest === undefined ? text : `${text}; did you mean ${nearest}?`;
  }

  /** Types that are provided, or would be by a built-in worker. */
  #types(namespace: string): string[] {
    const types = new Set(
      namespace === DEFAULT_NAMESPACE ? this.#sources.absences.triggerTypes : [],
    );
    for (const { id, namespace: other, providers } of this.#sources.triggers.types.all()) {
      if (types.size >= TYPES_COMPARED_MAX) break;
      if (other === namespace && providers.length > 0) types.add(id);
    }
    return [...types];
  }
}

function viewOfTrigger(trigger: Trigger, reasons: TriggerReasons): TriggerView {
  const { id, type, function_id, namespace, config = {}, metadata, owner, delivery } = trigger;
  return {
    id,
    trigger_type: type.id,
    trigger_namespace: type.namespace,
    function_id,
    namespace: namespace ?? DEFAULT_NAMESPACE,
    config,
    ...(metadata === undefined ? {} : { metadata }),
    state: delivery ? (delivery.isRefused ? "refused" : "offered") : "parked",
    reason: reasons.of(trigger),
    worker_id: owner.id,
    worker_name: owner.nameFor(function_id),
    ...engineOf(owner),
  };
}

/** The engine behind a connection; nothing for a worker. */
function engineOf({ info: { engine } }: Peer): { readonly engine?: string } {
  return engine === undefined ? {} : { engine };
}

/** Whether a function's metadata hides it from listings. */
function isInternal(metadata: Json | undefined): boolean {
  return (metadata as JsonObject | null | undefined)?.internal === true;
}
