/**
 * Applies each message to the tables of the core and sends the frames that follow from it.
 *
 * The core is a synchronous state machine: a frame comes in, frames go out, nothing is awaited. It
 * guarantees:
 *
 * 1. **Exactly one result.** Every call with an id gets exactly one result while its caller is
 *    connected: the callee's, or an error of the engine.
 * 2. **Only the callee answers.** The engine ignores a result or progress from any worker but the
 *    callee, and a cancellation from any but the caller.
 * 3. **Ids belong to their sender.** The engine gives each running call an id of its own, so equal
 *    ids of two callers cannot collide. Ids of triggers belong to the name of their worker.
 * 4. **Disconnecting cleans up first.** When a worker disconnects, the engine removes its
 *    functions, triggers and trigger types before it handles any other frame; calls that it
 *    executed end with `invocation_stopped`, calls that it waited for are cancelled. `reattach`
 *    does the same to the previous connection, and late frames of that one have no effect. During
 *    the handover of a worker that will come back (`ports/traffic.ts`), its triggers stay and calls
 *    of its functions are parked, for a bounded time. Of more than 1,000 registrations, the others
 *    are first removed in turns, as if the worker had taken them back.
 * 5. **Triggers outlive their provider.** When a provider registers the type again, it receives
 *    each trigger exactly once, with the same id.
 * 6. **In order.** Frames of one connection take effect in the order of their arrival; a call
 *    directly after a registration sees it.
 * 7. **Payloads unchanged.** `data` and `result` are forwarded byte for byte, large integers and
 *    spacing included. (With batching, a raw newline between tokens becomes a space.)
 * 8. **Bounded.** Every table, queue and buffer has a limit in number and bytes, and an error code
 *    for when it is reached. What a message costs is bounded before it is paid.
 * 9. **No retries.** The engine never repeats a call by itself; only queues redeliver, because they
 *    promise to.
 * 10. **Synchronous.** Handling a frame returns after all resulting frames were sent.
 *
 * @module
 */
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import {
  DEFAULT_NAMESPACE,
  type ErrorBody,
  type Reattach,
  type RegisterFunction,
  type RegisterTrigger,
  type RegisterTriggerType,
  type UnregisterFunction,
} from "../../sdk/typescript/wire/protocol.ts";
import { type Absences, NO_ABSENCES } from "../ports/absences.ts";
import type { CallObserver, ObservedEndpoint, ObservedFunction } from "../ports/call_observer.ts";
import type { Clock } from "../ports/clock.ts";
import type { Connection } from "../ports/connection.ts";
import type { Directory } from "../ports/directory.ts";
import type { EngineEvent, EventListener } from "../ports/events.ts";
import type { Firings } from "../ports/firings.ts";
import type { Schemas } from "../ports/schemas.ts";
import type { ServedFunctions } from "../ports/served.ts";
import type { TelemetryListener } from "../ports/telemetry.ts";
import type { Traffic } from "../ports/traffic.ts";
import { AccessGuard } from "./access/guard.ts";
import { Calls, type RouterSettings } from "./calls.ts";
import { CORE_FUNCTIONS, CoreFunctions } from "./core_functions.ts";
import { ErrorReplies, failure } from "./error_replies.ts";
import { CoreFirings } from "./firings.ts";
import {
  type EngineLoad,
  type FunctionLoad,
  FUNCTIONS_PER_ENGINE_MAX,
  FUNCTIONS_PER_WORKER_MAX,
  FunctionTable,
  isOfBuiltin,
} from "./function_table.ts";
import { isEqualSecret } from "./guards.ts";
import { Handovers } from "./handovers.ts";
import { callSourceOf, LiveDirectory } from "./live_directory.ts";
import { described, NameGuard } from "./name_guard.ts";
import { ParkedCalls } from "./parked_calls.ts";
import { Peer, type PeerInfo } from "./peer.ts";
import type { MemoryBudget } from "../ports/memory.ts";
import { Placement } from "./placement.ts";
import { NO_HOLDING, Registrations } from "./registrations.ts";
import { Servers } from "./served.ts";
import { Session, type SessionOwner } from "./session.ts";
import {
  type Trigger,
  TRIGGERS_PER_ENGINE_MAX,
  TRIGGERS_PER_WORKER_MAX,
  TriggerTable,
} from "./trigger_table.ts";
import type { Envelope } from "./wire/envelope.ts";
import type { ByteRange, ParsedFrame } from "./wire/parsed_frame.ts";

export type { PeerInfo } from "./peer.ts";
export type { RouterSettings } from "./calls.ts";

/** Dependencies and settings of a router. */
export interface RouterOptions {
  readonly clock: Clock;
  readonly schemas: Schemas;
  readonly settings: RouterSettings;
  /** Returns a new random UUID. */
  newId(): string;
  /** Called for rare events, each after all its consequences were sent; must not throw. */
  report(event: EngineEvent): void;
  /** Default: {@linkcode noopObserver}. */
  readonly observer?: CallObserver;
  /** Receives telemetry that workers send on their own connections; without it that is dropped. */
  readonly telemetry?: TelemetryListener;
  /** For registrations and waiting calls. Default: {@linkcode UNLIMITED_MEMORY}. */
  readonly memory?: MemoryBudget;
  /** Says why something is not there. Default: {@linkcode NO_ABSENCES}. */
  readonly absences?: Absences;
  /** Serves functions by HTTP. Default: none are served. */
  readonly served?: ServedFunctions;
}

const ENGINE_PREFIX = "engine::";
/** Announced in `workerregistered`. */
const CAPABILITIES = ["cancel", "timeout", "progress"];

/** Routes calls from the workers that make them to the workers that execute them. */
export class Router {
  readonly #options: RouterOptions;
  readonly #sessions = new Map<string, Session>();
  /** Built-in workers by name. */
  readonly #builtins = new Map<string, Peer>();
  readonly #registrations: Registrations;
  readonly #functions: FunctionTable;
  readonly #triggers: TriggerTable;
  readonly #errorReplies: ErrorReplies;
  readonly #names: NameGuard;
  readonly #calls: Calls;
  readonly #coreFunctions: CoreFunctions;
  readonly #handovers: Handovers;
  readonly #guard: AccessGuard;
  readonly #servers: Servers;
  readonly #events: EngineEvent[] = [];
  readonly #report: EventListener = (event) => void this.#events.push(event);
  readonly #owner: SessionOwner = {
    handle: (peer, frame, envelope) => this.#handle(peer, frame, envelope),
    isBuiltin: (function_id, namespace) => this.#isBuiltin(function_id, namespace),
    reattach: (peer, message) => this.#reattach(peer, message),
    suspected: (peer, isSuspect) => this.#suspected(peer, isSuspect),
    retire: (peer) => this.#handovers.retire(peer),
    disconnected: (peer, reason) => this.#disconnected(peer, reason),
    flushEvents: () => this.#flushEvents(),
  };
  #isReporting = false;
  #state: "open" | "draining" | "closed" = "open";

  /** The current registrations. */
  readonly directory: Directory;
  /** Drains workers that are about to be restarted or stopped. */
  readonly traffic: Traffic;
  /** Calls of built-in workers for one event to many functions. */
  readonly firings: Firings;

  constructor(options: RouterOptions) {
    const { clock, schemas, settings, observer = noopObserver, memory } = options;
    const registrations = new Registrations(memory);
    this.#registrations = registrations;
    this.#functions = new FunctionTable(registrations, memory);
    this.#triggers = new TriggerTable((trigger) => this.#reportParked(trigger), registrations);
    const [functions, triggers, report] = [this.#functions, this.#triggers, this.#report];
    const { absences = NO_ABSENCES } = options;
    const errorReplies = new ErrorReplies(clock, functions, report, observer, absences);
    const names = new NameGuard(functions, errorReplies, settings.shared_functions);
    this.#names = names;
    const newId = (): string => options.newId();
    const parked = new ParkedCalls(memory, absences);
    const placement = new Placement(functions, schemas, errorReplies, settings);
    const secret = newId();
    const calls = new Calls({
      clock,
      placement,
      errorReplies,
      parked,
      observer,
      settings,
      secret,
      newId,
    });
    this.#options = options;
    this.#errorReplies = errorReplies;
    this.#calls = calls;
    this.#coreFunctions = new CoreFunctions({
      clock,
      calls,
      triggers,
      registrations,
      errorReplies,
      names,
      report,
      observer,
      newId,
    });
    observer.attach(callSourceOf(calls, parked, this.#sessions));
    const peer = (id: string): Peer | undefined => this.#sessions.get(id)?.peer;
    const flushEvents = (): void => this.#flushEvents();
    this.#guard = new AccessGuard({ functions, triggers, calls, errorReplies, flushEvents });
    this.#servers = new Servers(functions, options.served, (peer) => this.#sessionOf(peer));
    this.#handovers = new Handovers({
      functions,
      triggers,
      parked,
      calls,
      report,
      peer,
      flushEvents,
    });
    this.traffic = this.#handovers;
    this.firings = new CoreFirings(functions, calls, this.#builtins);
    const isDraining = (): boolean => this.#state !== "open";
    const sources = { functions, triggers, peers: this.#sessions, absences, names, isDraining };
    this.directory = new LiveDirectory(sources);
  }

  /** Calls that run or are parked, void calls included. */
  get runningCalls(): number {
    return this.#calls.size;
  }

  /**
   * Accepts an open connection and sends `workerregistered`; the connection reports its events to
   * the result.
   */
  open(connection: Connection, info: PeerInfo): Session {
    const { clock, observer = noopObserver } = this.#options;
    const [id, reattach_token] = [this.#options.newId(), this.#options.newId()];
    const identity = { id, reattach_token, info, connected_at_ms: clock.wall() };
    const peer = new Peer(connection, identity);
    peer.endpoint = observer.endpointOf(id, info.builtin ?? info.engine ?? "", !!info.builtin);
    const session = this.#sessionOf(peer);
    this.#sessions.set(id, session);
    if (info.builtin !== null) this.#builtins.set(info.builtin, peer);
    const capabilities = [...CAPABILITIES, ...connection.isBatching ? ["batch"] : []];
    peer.send({ type: "workerregistered", worker_id: id, reattach_token, capabilities });
    if (this.#state === "closed") {
      session.end(1001, "the engine has stopped");
      return session;
    }
    this.#report({ type: "worker_connected", worker_id: id, address: info.address });
    this.#flushEvents();
    return session;
  }

  #sessionOf(peer: Peer): Session {
    const { clock, telemetry } = this.#options;
    const [calls, errorReplies, owner] = [this.#calls, this.#errorReplies, this.#owner];
    return new Session(peer, { clock, calls, errorReplies, owner, telemetry });
  }

  /** The engine behind a connection says how busy it is with a function. */
  reportLoad(worker_id: string, function_id: string, namespace: string, load: EngineLoad): void {
    const session = this.#sessions.get(worker_id);
    if (session) this.#functions.reportLoad(session.peer, function_id, namespace, load);
  }

  /** How busy the workers of this engine are with each function. */
  readonly loads = (): Iterable<FunctionLoad> => this.#functions.loads();

  /** Ends the connections that `isOver` chooses, each with an `error` frame before. */
  endWhere(isOver: (info: PeerInfo) => boolean, error: ErrorBody): void {
    for (const session of [...this.#sessions.values()]) {
      if (!isOver(session.peer.info)) continue;
      session.peer.send({ type: "error", error });
      session.end(1008, error.message);
    }
  }

  /** Applies new settings to later calls; running calls keep their deadlines. */
  applySettings(settings: RouterSettings): void {
    this.#calls.applySettings(settings);
    this.#names.apply(settings.shared_functions);
  }

  /**
   * Rejects new calls with `overloaded`; running calls finish, including the calls that they make.
   */
  drain(): void {
    if (this.#state === "open") this.#state = "draining";
    this.#calls.drain();
  }

  /**
   * Ends every open call with `invocation_stopped`, so that callers learn of it before their
   * connections are closed. To be called once running calls had their time to finish.
   */
  stopCalls(): void {
    this.drain();
    this.#calls.stopAll(STOPPING);
    this.#flushEvents();
  }

  /** Closes every connection with 1001. */
  close(): void {
    this.stopCalls();
    this.#state = "closed";
    for (const session of [...this.#sessions.values()]) {
      session.end(1001, STOPPING);
    }
    this.#calls.stop();
  }

  /** Dispatches a parsed message, as far as the rules of its connection allow it. */
  #handle(peer: Peer, frame: ParsedFrame, envelope?: Envelope): void {
    if (peer.access === undefined) return this.#apply(peer, frame, envelope);
    const apply = (admitted: ParsedFrame, of?: Envelope): void => this.#apply(peer, admitted, of);
    this.#guard.admit(peer, frame, apply, envelope);
  }

  #apply(peer: Peer, frame: ParsedFrame, envelope?: Envelope): void {
    const { message } = frame;
    switch (message.type) {
      case "invokefunction":
        if (this.#coreFunctions.has(message)) return this.#coreFunctions.run(peer, message, frame);
        return this.#calls.invoke(peer, message, frame, envelope);
      case "invocationresult":
        return this.#calls.settle(peer, message, frame);
      case "invocationprogress":
        return this.#calls.progress(peer, message, frame);
      case "cancelinvocation":
        return this.#calls.cancel(peer, message);
      case "registerfunction":
        return this.#registerFunction(peer, message, frame.range);
      case "unregisterfunction":
        return this.#unregisterFunction(peer, message);
      case "registertriggertype":
        return this.#registerType(peer, message, frame.range);
      case "unregistertriggertype":
        return this.#triggersChanged(
          peer,
          this.#triggers.removeProvider(peer, message.id, message.namespace),
        );
      case "registertrigger":
        return this.#registerTrigger(peer, message, frame.range);
      case "triggerregistrationresult":
        return this.#triggersChanged(peer, this.#triggers.answer(peer, message));
      case "unregistertrigger":
        return this.#triggersChanged(peer, this.#triggers.remove(peer, message.id));
      case "ping":
        return peer.send({ type: "pong" });
      case "pong":
      case "registerservice":
      case "reattach":
        return;
    }
  }

  /** Ends the previous connection of a worker before the next frame is handled. */
  #reattach(peer: Peer, { previous_worker_id, reattach_token }: Reattach): void {
    const session = this.#sessions.get(previous_worker_id);
    const previous = session?.peer ?? this.#handovers.findDisconnected(previous_worker_id);
    if (!previous || previous === peer) return;
    if (!isEqualSecret(previous.reattach_token, reattach_token)) return;
    this.#handovers.reattached(previous, peer);
    session?.end(1000, "the worker reattached on another connection");
  }

  /** Prefers other replicas to those of a worker that may be frozen. */
  #suspected(peer: Peer, is_suspect: boolean): void {
    this.#functions.suspect(peer, is_suspect);
    const name = peer.info.builtin ?? peer.announcement?.name ?? null;
    this.#report({ type: "worker_suspected", worker_id: peer.id, name, is_suspect });
  }

  /** Cleans up after a connection in the order that PROTOCOL 3.6 requires. */
  #disconnected(peer: Peer, reason: string): void {
    this.#sessions.delete(peer.id);
    const { builtin } = peer.info;
    if (builtin !== null && this.#builtins.get(builtin) === peer) this.#builtins.delete(builtin);
    const functions = this.#functions.entriesOf(peer);
    const { registered, removed } = this.#functions.removePeer(peer);
    this.#calls.removePeer(peer, reason);
    if (peer.server) this.#calls.removePeer(peer.server, reason);
    this.#servers.close(peer, reason);
    const had = this.#triggers.countOf(peer);
    this.#handovers.disconnected(peer);
    this.#triggers.removeProviderOfAll(peer);
    const name = peer.info.builtin ?? peer.announcement?.name ?? null;
    peer.announcement = undefined;
    this.#registrations.release(peer, peer.announcementHolding ?? NO_HOLDING);
    peer.announcementHolding = undefined;
    const worker_id = peer.id;
    this.#report({ type: "worker_disconnected", worker_id, name, reason, functions });
    const ids_changed = removed > 0;
    if (registered > 0) this.#report({ type: "functions_changed", worker_id, ids_changed });
    this.#triggersChanged(peer, this.#triggers.countOf(peer) < had);
  }

  /**
   * Reports queued events. Listeners may send frames of their own, so events are not reported
   * recursively.
   */
  #flushEvents(): void {
    if (this.#isReporting) return;
    this.#isReporting = true;
    for (let event = this.#events.shift(); event; event = this.#events.shift()) {
      this.#options.report(event);
    }
    this.#isReporting = false;
  }

  #registerFunction(peer: Peer, message: RegisterFunction, frame: ByteRange): void {
    const { id, namespace = DEFAULT_NAMESPACE } = message;
    if (this.#isReserved(peer, id)) return this.#reject(peer, namespace, id);
    const problem = message.invocation && this.#servers.problem(peer, message);
    if (problem !== undefined) return this.#rejectServed(peer, namespace, id, problem);
    const owner = this.#names.ownerAgainst(peer, id, namespace);
    if (owner) return this.#rejectStranger(peer, owner, namespace, id);
    const count = this.#functions.countOf(peer);
    const most = peer.isEngine ? FUNCTIONS_PER_ENGINE_MAX : FUNCTIONS_PER_WORKER_MAX;
    if (count >= most && !this.#isRegistered(peer, id, namespace)) {
      const text = `Function ${id} is refused: a worker offers at most ${count}`;
      return this.#refuse(peer, failure("overloaded", text));
    }
    const known = this.#functions.holdingOf(peer, id, namespace);
    const holding = this.#registrations.take(peer, `Function ${id}`, frame, known);
    if ("code" in holding) return this.#refuse(peer, holding);
    const { isReserved, isNew, displaced } = this.#functions.add(
      peer,
      message,
      holding,
      this.#servers.calleeOf(peer, message),
    );
    if (isReserved) {
      const detail = `${id} is a function of the engine and cannot be taken over`;
      return this.#errorReplies.warn(peer, "a registration has no effect", detail);
    }
    for (const other of displaced) {
      const detail = `${id} is a function of the engine from now on`;
      this.#errorReplies.warn(other, "a registration has no effect any more", detail);
    }
    const { schemas, settings } = this.#options;
    if (settings.validate_payloads && !peer.isBuiltin) schemas.prepare?.();
    this.#report({ type: "functions_changed", worker_id: peer.id, ids_changed: isNew });
    this.#names.registered(peer, id, namespace);
    this.#handovers.functionRegistered(peer, id, namespace);
  }

  #unregisterFunction(peer: Peer, { id, namespace }: UnregisterFunction): void {
    const removed = this.#functions.remove(peer, id, namespace);
    if (!removed) return;
    const type = "functions_changed";
    this.#report({ type, worker_id: peer.id, ids_changed: removed.gone });
  }

  #registerType(peer: Peer, message: RegisterTriggerType, frame: ByteRange): void {
    const { id, namespace = DEFAULT_NAMESPACE } = message;
    if (this.#isReserved(peer, id)) return this.#reject(peer, namespace, id);
    const what = `Trigger type ${id}`;
    const known = this.#triggers.types.holdingOf(peer, id, namespace);
    if (!known && this.#isFull(peer)) return this.#refuse(peer, fullError(what));
    const holding = this.#registrations.take(peer, what, frame, known);
    if ("code" in holding) return this.#refuse(peer, holding);
    if (!this.#triggers.addProvider(peer, message, holding)) {
      const detail = `${id} is a trigger type of the engine and cannot be taken over`;
      return this.#errorReplies.warn(peer, "a registration has no effect", detail);
    }
    this.#triggersChanged(peer, true);
  }

  #registerTrigger(peer: Peer, message: RegisterTrigger, frame: ByteRange): void {
    const what = `Trigger ${message.id}`;
    const before = this.#triggers.find(message.id);
    const known = before?.owner === peer ? before.holding : undefined;
    if (!known && this.#isFull(peer)) return this.#refuse(peer, fullError(what));
    const holding = this.#registrations.take(peer, what, frame, known);
    if ("code" in holding) return this.#refuse(peer, holding);
    let replaced: Peer | undefined;
    try {
      replaced = this.#triggers.add(peer, message, undefined, holding);
    } catch (thrown) {
      this.#registrations.release(peer, holding);
      if (!(thrown instanceof EngineError)) throw thrown;
      return this.#refuseTrigger(peer, message, thrown.toJSON());
    }
    if (replaced) this.#reportReplaced(replaced, message);
    this.#triggersChanged(peer, true);
  }

  /** Tells a worker that its trigger is not registered, and why. */
  #refuseTrigger(peer: Peer, message: RegisterTrigger, error: ErrorBody): void {
    const { id, trigger_type, function_id } = message;
    this.#errorReplies.warn(peer, "a trigger was refused", error.message);
    peer.send({ type: "triggerregistrationresult", id, trigger_type, function_id, error });
  }

  /** Tells a connection that another one of its worker registered its trigger again. */
  #reportReplaced(peer: Peer, { id, trigger_type, function_id }: RegisterTrigger): void {
    const text = `Trigger ${id} was registered again by another connection of worker ` +
      `${peer.ownerName}, which holds it now`;
    this.#errorReplies.warn(peer, "a trigger was replaced", text);
    const error = failure("trigger_registration_failed", text);
    peer.send({ type: "triggerregistrationresult", id, trigger_type, function_id, error });
  }

  #triggersChanged(peer: Peer, changed: boolean): void {
    if (changed) this.#report({ type: "triggers_changed", worker_id: peer.id });
  }

  /** Reports a trigger whose type has no provider. Its owner is not notified: PROTOCOL 13.6. */
  #reportParked(
    { owner, id: trigger_id, type: { id: trigger_type }, function_id }: Trigger,
  ): void {
    // On shutdown providers disconnect before originators, which is not worth a report.
    if (this.#state !== "open" || !owner.parkedTriggerLimit.allow(this.#options.clock.now())) {
      return;
    }
    const type = "trigger_parked";
    const why = this.directory.trigger(trigger_id)?.reason ?? "";
    this.#report({ type, worker_id: owner.id, trigger_id, trigger_type, function_id, why });
  }

  #isRegistered(peer: Peer, id: string, namespace: string): boolean {
    const entry = this.#functions.find(id, namespace);
    return entry?.replicas.some((replica) => replica.peer === peer) ?? false;
  }

  #isBuiltin(function_id: string, namespace: string = DEFAULT_NAMESPACE): boolean {
    if (namespace === DEFAULT_NAMESPACE && CORE_FUNCTIONS.has(function_id)) return true;
    return isOfBuiltin(this.#functions.find(function_id, namespace));
  }

  #isFull(peer: Peer): boolean {
    const most = peer.isEngine ? TRIGGERS_PER_ENGINE_MAX : TRIGGERS_PER_WORKER_MAX;
    return this.#triggers.countOf(peer) >= most;
  }

  #isReserved(peer: Peer, id: string): boolean {
    return id.startsWith(ENGINE_PREFIX) && !peer.isBuiltin && !peer.isEngine;
  }

  #reject(peer: Peer, namespace: string, function_id: string): void {
    peer.send({
      type: "registrationrejected",
      code: "FUNCTION_NAMESPACE_CONFLICT",
      namespace,
      function_id,
      owner_worker_id: "engine",
      message: `${function_id} is refused: ids that begin with ${ENGINE_PREFIX} are the engine's`,
    });
  }

  /** Rejects a function that a worker of another name offers: `engine.shared_functions`. */
  #rejectStranger(peer: Peer, owner: Peer, namespace: string, function_id: string): void {
    const messageFor = (owner: string): string =>
      `${function_id} is refused: ${owner} offers it, and engine.shared_functions does not list ` +
      "it; replicas need the same worker name";
    this.#errorReplies.warn(peer, "a registration was refused", messageFor(described(owner)));
    const code = "FUNCTION_NAMESPACE_CONFLICT";
    const message = messageFor(peer.isLimited ? "another worker" : described(owner));
    const owner_worker_id = peer.isLimited ? "engine" : owner.id;
    peer.send({
      type: "registrationrejected",
      code,
      namespace,
      function_id,
      owner_worker_id,
      message,
    });
  }

  /** Rejects a function whose URL the engine does not request: PROTOCOL 2.2. */
  #rejectServed(peer: Peer, namespace: string, function_id: string, problem: string): void {
    const message = `${function_id} is refused: ${problem}`;
    this.#errorReplies.warn(peer, "a function served by HTTP was refused", message);
    const code = "FUNCTION_NAMESPACE_CONFLICT";
    const owner_worker_id = "engine";
    const type = "registrationrejected";
    peer.send({ type, code, namespace, function_id, owner_worker_id, message });
  }

  #refuse(peer: Peer, error: ErrorBody): void {
    this.#errorReplies.warn(peer, "a registration was refused", error.message);
    peer.send({ type: "error", error });
  }
}

/** The reason of closed connections and stopped calls. */
const STOPPING = "the engine is stopping";

/** The error of a trigger or type beyond the bound of their number. */
function fullError(what: string): ErrorBody {
  const most = `a worker holds at most ${TRIGGERS_PER_WORKER_MAX} triggers and types`;
  return failure("overloaded", `${what} is refused: ${most}`);
}

/** Ignores every call. */
export const noopObserver: CallObserver = {
  attach: () => {},
  functionOf: (namespace: string, function_id: string): ObservedFunction => ({
    namespace,
    function_id,
  }),
  endpointOf: (worker_id: string): ObservedEndpoint => ({ worker_id }),
  opened: () => {},
  wantsCandidates: () => false,
  sent: () => undefined,
  settled: () => {},
  failed: () => {},
  refused: () => {},
  answered: () => {},
};
