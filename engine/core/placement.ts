/**
 * Chooses the replica for a call, or the error with which the call ends.
 *
 * Sends nothing to callers. The payload is checked against the `request_format` of the chosen
 * replica; a schema is compiled for the first call that needs it, and an unusable one is reported
 * and not enforced. Calls of a function whose schema takes long to compile have to wait for it.
 *
 * @module
 */
import type { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type { ErrorBody, InvokeFunction, Json } from "../../sdk/typescript/wire/protocol.ts";
import type { SchemaCheck, Schemas } from "../ports/schemas.ts";
import type { Candidate } from "../ports/telemetry.ts";
import { type ErrorReplies, failure } from "./error_replies.ts";
import {
  type FunctionEntry,
  type FunctionTable,
  hasRoom,
  type LoadBounds,
  type Replica,
} from "./function_table.ts";
import type { Peer } from "./peer.ts";
import type { Envelope } from "./wire/envelope.ts";
import { JSON_PARTS_MAX, TOO_MANY_PARTS } from "./wire/members.ts";
import { parsePayload, type RawPayload } from "./wire/parsed_frame.ts";

/** Replicas listed among the candidates of one call. */
export const TRACE_CANDIDATES_MAX = 64;

/** Settings that influence the choice. */
export interface PlacementSettings extends LoadBounds {
  /** Whether payloads are checked against `request_format`. */
  readonly validate_payloads: boolean;
}

/** The call has to wait until the schema of its replica is compiled. */
export const COMPILING = "compiling";

/** Learns for which functions schemas are compiled. */
export interface CompilingListener {
  /** Calls of the function wait from now on; each is followed by one compiled(). */
  compiling(entry: FunctionEntry): void;
  /** Starts the calls that waited, the oldest first; yields behind each. */
  starting(entry: FunctionEntry): Iterable<void>;
  compiled(entry: FunctionEntry): void;
}

/** Chooses replicas. */
export class Placement {
  /** Set before the first call. */
  onCompiling: CompilingListener | undefined;
  readonly #compiling = new Set<Replica>();
  readonly #functions: FunctionTable;
  readonly #schemas: Schemas;
  readonly #errorReplies: ErrorReplies;
  #settings: PlacementSettings;

  /** Unusable schemas are reported to `errorReplies`. */
  constructor(
    functions: FunctionTable,
    schemas: Schemas,
    errorReplies: ErrorReplies,
    settings: PlacementSettings,
  ) {
    this.#functions = functions;
    this.#schemas = schemas;
    this.#errorReplies = errorReplies;
    this.#settings = settings;
  }

  /** Applies new settings to later calls. */
  applySettings(settings: PlacementSettings): void {
    this.#settings = settings;
  }

  /** The replica for a call that was not parsed; `undefined` when it has to be parsed. */
  find(caller: Peer, call: Envelope): Replica | undefined {
    const entry = this.#functions.findBytes(call.view, call.functionStart, call.functionEnd);
    if (!entry || (entry.enforcedFormats > 0 && this.#validates(caller))) return undefined;
    return this.#functions.pick(entry, call.end - call.idEnd, this.#settings, caller);
  }

  /**
   * The replica for a call, or an error; `undefined` when no replica is ready,
   * {@linkcode COMPILING} when the call has to wait. `bytes` is the length of the call's remainder,
   * which counts against the limits of the callee; `payload` is its payload if that was not parsed.
   */
  choose(
    caller: Peer,
    call: InvokeFunction,
    bytes: number,
    payload?: RawPayload,
  ): Replica | ErrorBody | typeof COMPILING | undefined {
    const { function_id, namespace } = call;
    const entry = this.#functions.find(function_id, namespace);
    if (!entry) return undefined;
    let replica = this.#functions.pick(entry, bytes, this.#settings, caller) ??
      this.#functions.pickSelf(entry, caller, bytes, this.#settings);
    if (replica && this.#isCompiling(caller, replica)) {
      replica.far?.ended();
      replica = this.#compiledOf(entry, bytes);
      if (!replica) return COMPILING;
    }
    if (replica) {
      const error = this.#payloadError(caller, replica, call, payload);
      if (error) replica.far?.ended();
      return error ?? replica;
    }
    if (entry.ready.length === 0) return undefined;
    // What the calling engine knows of this one is out of date.
    if (caller.isEngine && entry.ready.every(({ peer }) => peer.isEngine)) return undefined;
    const who = `every worker that offers ${function_id}, or the engine's memory, is at its bound`;
    return failure("overloaded", `Function ${function_id} is overloaded: ${who}`);
  }

  /** The error of a payload that the newest replica of its function does not accept. */
  checkPayload(caller: Peer, call: InvokeFunction, payload?: RawPayload): ErrorBody | undefined {
    const replica = this.#functions.find(call.function_id, call.namespace)?.replicas.at(-1);
    return replica && this.#payloadError(caller, replica, call, payload);
  }

  /** Whether {@linkcode checkPayload} of such a call has to wait. */
  mustWait(caller: Peer, { function_id, namespace }: InvokeFunction): boolean {
    const replica = this.#functions.find(function_id, namespace)?.replicas.at(-1);
    return replica !== undefined && this.#isCompiling(caller, replica);
  }

  /** Whether a schema of the function is being compiled. */
  isCompiling({ function_id, namespace }: InvokeFunction): boolean {
    if (this.#compiling.size === 0) return false;
    const entry = this.#functions.find(function_id, namespace);
    return entry?.replicas.some((replica) => this.#compiling.has(replica)) ?? false;
  }

  #isCompiling(caller: Peer, replica: Replica): boolean {
    if (replica.check !== undefined || !this.#validates(caller)) return false;
    if (this.#compiling.has(replica)) return true;
    const { registration: { request_format }, peer } = replica;
    const onCompiled = (outcome: SchemaCheck | Error) => this.#compiled(replica, outcome);
    if (!this.#schemas.compileSoon?.(request_format!, peer, onCompiled)) return false;
    this.#compiling.add(replica);
    this.onCompiling?.compiling(replica.entry);
    return true;
  }

  /** The least busy replica that calls need not wait for, while the schema of another compiles. */
  #compiledOf({ ready }: FunctionEntry, bytes: number): Replica | undefined {
    let best: Replica | undefined;
    for (const replica of ready) {
      const { callee, check, far } = replica;
      if (check === undefined || far || !hasRoom(callee, bytes, this.#settings)) continue;
      if (!best || callee.inflightCalls < best.callee.inflightCalls) best = replica;
    }
    return best;
  }

  /** Checking the payloads of the calls that waited may take long, so they start in turns. */
  *#compiled(replica: Replica, outcome: SchemaCheck | Error): Generator<void, void, void> {
    if (outcome instanceof Error) this.#isUnusable(replica, outcome);
    else replica.check = outcome;
    if (this.onCompiling) yield* this.onCompiling.starting(replica.entry);
    this.#compiling.delete(replica);
    this.onCompiling?.compiled(replica.entry);
  }

  #isUnusable(replica: Replica, { message }: Error): void {
    replica.check = null;
    const detail = `${replica.entry.id}: ${message}`;
    this.#errorReplies.warn(replica.peer, "request_format is not enforced", detail);
  }

  /**
   * Firings of built-in workers are not checked: the trigger type defines their payload. A call
   * from another engine was checked there.
   */
  #validates(caller: Peer): boolean {
    return this.#settings.validate_payloads && !caller.isBuiltin && !caller.isEngine;
  }

  #payloadError(
    caller: Peer,
    replica: Replica,
    { data = null }: InvokeFunction,
    payload: RawPayload | undefined,
  ): ErrorBody | undefined {
    const what = `Payload of ${replica.entry.id}`;
    if (replica.peer.isBuiltin && payload) return costError(payload, what);
    const check = this.#validates(caller) ? this.#checkOf(replica) : null;
    if (!check) return undefined;
    let value: Json = data;
    try {
      if (payload) value = parsePayload(payload, what);
    } catch (thrown) {
      return (thrown as EngineError).toJSON();
    }
    const found = check(value);
    if (found.length === 0) return undefined;
    const errors = found.map(({ path, message }) => ({ path, message }));
    const first = `${errors[0]!.path} ${errors[0]!.message}`.trim();
    const message = `${what} does not fit its request_format: ${first}`;
    return failure("invalid_payload", message, { errors });
  }

  /** The compiled schema of a replica; `null` when it has no usable one. */
  #checkOf(replica: Replica): SchemaCheck | null {
    if (replica.check === undefined) {
      try {
        replica.check = this.#schemas.compile(replica.registration.request_format!);
      } catch (thrown) {
        this.#isUnusable(replica, thrown as Error);
      }
    }
    return replica.check ?? null;
  }
}

/** The error of a payload that is too costly for a built-in worker, which parses it. */
function costError({ parts }: RawPayload, what: string): ErrorBody | undefined {
  if (parts <= JSON_PARTS_MAX) return undefined;
  return failure("invalid_payload", `${what} ${TOO_MANY_PARTS}`);
}

/**
 * The replicas of a function at the time when `chosen` got a call whose remainder has `bytes`
 * bytes, the chosen one first. The call itself already counts as in flight.
 */
export function candidatesOf(
  { id, replicas }: FunctionEntry,
  chosen: Peer,
  bytes: number,
  bounds: LoadBounds,
): Candidate[] {
  const others = replicas.filter(({ callee }) => callee !== chosen)
    .slice(0, TRACE_CANDIDATES_MAX - 1)
    .map((replica) => {
      const skipped = skipReason(replica, bytes, bounds);
      return candidateOf(replica.peer, id, replica.callee.inflightCalls, skipped);
    });
  const owner = replicas.find(({ callee }) => callee === chosen)?.peer ?? chosen;
  return [candidateOf(owner, id, chosen.inflightCalls - 1, null), ...others];
}

function candidateOf(
  peer: Peer,
  id: string,
  in_flight: number,
  passed_over: string | null,
): Candidate {
  return { worker_id: peer.id, name: peer.nameFor(id), in_flight, passed_over };
}

function skipReason({ peer, callee }: Replica, bytes: number, bounds: LoadBounds): string | null {
  if (peer.isDraining) return "draining";
  if (peer.isSuspect) return "does not answer";
  if (callee.inflightCalls >= bounds.max_inflight_calls_per_worker) return "at its bound of calls";
  return hasRoom(callee, bytes, bounds) ? null : "at its bound of bytes";
}
