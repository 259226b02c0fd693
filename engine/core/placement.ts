/**
 * Who runs a call, or why nobody does.
 *
 * Decides and sends nothing to callers. A payload is checked against the `request_format` of the
 * replica that was chosen; a schema is compiled with the first call that needs it, and one that
 * cannot be used is reported and not enforced.
 *
 * @module
 */
import { TRACE_CANDIDATES_MAX } from "../../sdk/typescript/wire/limits.ts";
import type { ErrorBody, InvokeFunction, Json } from "../../sdk/typescript/wire/protocol.ts";
import type { Misfit, Schemas } from "../ports/schemas.ts";
import type { Candidate } from "../ports/telemetry.ts";
import { failure, type Refusals } from "./error_replies.ts";
import {
  type FunctionTable,
  hasRoom,
  type LoadBounds,
  type Offer,
  type Replica,
} from "./function_table.ts";
import type { Peer } from "./peer.ts";
import type { Envelope } from "./wire/envelope.ts";

/** What the choice depends on, beside the table of functions. */
export interface PlacementSettings extends LoadBounds {
  /** Whether payloads are checked against `request_format`. */
  readonly validate_payloads: boolean;
}

/** Chooses. */
export class Placement {
  readonly #functions: FunctionTable;
  readonly #schemas: Schemas;
  readonly #refusals: Refusals;
  #settings: PlacementSettings;

  /** Makes one for a table of functions; `refusals` hears of schemas that cannot be used. */
  constructor(
    functions: FunctionTable,
    schemas: Schemas,
    refusals: Refusals,
    settings: PlacementSettings,
  ) {
    this.#functions = functions;
    this.#schemas = schemas;
    this.#refusals = refusals;
    this.#settings = settings;
  }

  /** What holds for calls from now on. */
  applySettings(settings: PlacementSettings): void {
    this.#settings = settings;
  }

  /** Who runs a call that was not parsed; `undefined` when somebody has to look at it. */
  find(caller: Peer, call: Envelope): Replica | undefined {
    const offer = this.#functions.findBytes(call.view, call.functionStart, call.functionEnd);
    if (!offer || (offer.formats > 0 && this.#checks(caller))) return undefined;
    return this.#functions.pick(offer, call.end - call.idEnd, this.#settings);
  }

  /**
   * Who runs a call, or the error it ends with; `undefined` when nobody there may run it. `bytes`
   * are those of its tail, which is what counts against the bound of whoever runs it.
   */
  choose(caller: Peer, call: InvokeFunction, bytes: number): Replica | ErrorBody | undefined {
    const { function_id, namespace, data } = call;
    const offer = this.#functions.find(function_id, namespace);
    if (!offer) return undefined;
    const replica = this.#functions.pick(offer, bytes, this.#settings) ??
      this.#functions.pickOwn(offer, caller, bytes, this.#settings);
    if (replica) return (this.#checks(caller) ? this.#misfit(replica, data) : undefined) ?? replica;
    if (offer.ready.length === 0) return undefined;
    const who = `every worker that offers ${function_id} is at its bound`;
    return failure("overloaded", `Function ${function_id} is overloaded: ${who}`);
  }

  /** Firings of the engine's own workers are not checked: their shape belongs to the type. */
  #checks(caller: Peer): boolean {
    return this.#settings.validate_payloads && !caller.isBuiltin;
  }

  #misfit(replica: Replica, data: Json = null): ErrorBody | undefined {
    const misfits = this.#misfits(replica, data);
    if (misfits.length === 0) return undefined;
    const errors = misfits.map(({ path, message }) => ({ path, message }));
    const first = `${errors[0]!.path} ${errors[0]!.message}`.trim();
    const message = `Payload of ${replica.offer.id} does not fit its request_format: ${first}`;
    return failure("invalid_payload", message, { errors });
  }

  #misfits(replica: Replica, data: Json): readonly Misfit[] {
    if (replica.check === undefined) {
      replica.check = null;
      try {
        replica.check = this.#schemas.compile(replica.registration.request_format!);
      } catch (thrown) {
        const detail = `${replica.offer.id}: ${(thrown as Error).message}`;
        this.#refusals.warn(replica.peer, "request_format is not enforced", detail);
      }
    }
    return replica.check?.(data) ?? [];
  }
}

/**
 * The replicas of a function as they were when `chosen` got a call whose tail has so many
 * bytes, which counts among those it runs already; the chosen one first.
 */
export function candidatesOf(
  { id, replicas }: Offer,
  chosen: Peer,
  bytes: number,
  bounds: LoadBounds,
): Candidate[] {
  const others = replicas.filter(({ peer }) => peer !== chosen)
    .slice(0, TRACE_CANDIDATES_MAX - 1)
    .map(({ peer }) => viewOf(peer, id, peer.inflightCalls, whyNot(peer, bytes, bounds)));
  return [viewOf(chosen, id, chosen.inflightCalls - 1, null), ...others];
}

function viewOf(peer: Peer, id: string, in_flight: number, passed_over: string | null): Candidate {
  return { worker_id: peer.id, name: peer.nameFor(id), in_flight, passed_over };
}

function whyNot(peer: Peer, bytes: number, bounds: LoadBounds): string | null {
  if (peer.isDraining) return "draining";
  if (peer.inflightCalls >= bounds.max_inflight_calls_per_worker) return "at its bound of calls";
  return hasRoom(peer, bytes, bounds) ? null : "at its bound of bytes";
}
