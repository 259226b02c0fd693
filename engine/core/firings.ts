/**
 * Calls for one event to many functions: the payload is copied into a frame once, and the beginning
 * of each call's frame is written in front of it.
 *
 * @module
 */
import { TRACEPARENT_CHARS_MAX } from "../ports/firings.ts";
import type {
  Fired,
  FiringBounds,
  FiringInput,
  FiringPayload,
  Firings,
  FiringTarget,
} from "../ports/firings.ts";
import { DEFAULT_NAMESPACE } from "../../sdk/typescript/wire/protocol.ts";
import type { Calls } from "./calls.ts";
import type { FunctionTable } from "./function_table.ts";
import type { Peer } from "./peer.ts";
import { bytesOf, viewOf } from "./wire/bytes.ts";
import {
  CALL_PREFIX,
  type CallRemainder,
  DATA_KEY,
  FUNCTION_KEY,
  TRACEPARENT_KEY,
  UUID_BYTES,
} from "./wire/frame_parts.ts";

/** A larger frame is released when the next payload comes. */
const FRAME_BYTES_KEPT = 256 * 1024;
/** In front of the beginning: a recorded call gets a trace that may be longer. */
const SPARE_BYTES = 256;
/** Room for the beginnings of frames; a longer one makes the frame grow. */
const HEAD_BYTES = 4_096;
const CLOSE_BRACE = 0x7d;
const ID_PLACE = "0".repeat(UUID_BYTES);

/** The {@linkcode Firings} of one router. */
export class CoreFirings implements Firings {
  readonly #functions: FunctionTable;
  readonly #calls: Calls;
  readonly #builtins: ReadonlyMap<string, Peer>;
  readonly #frame = new FiringFrame();

  /** `builtins`: the connections of built-in workers by their names; it is live. */
  constructor(functions: FunctionTable, calls: Calls, builtins: ReadonlyMap<string, Peer>) {
    this.#functions = functions;
    this.#calls = calls;
    this.#builtins = builtins;
  }

  prepare({ function_id, namespace, metadata }: FiringInput): FiringTarget {
    let head = `${CALL_PREFIX}${ID_PLACE}${FUNCTION_KEY}${JSON.stringify(function_id).slice(1)}`;
    if (namespace !== undefined && namespace !== DEFAULT_NAMESPACE) {
      head += `,"namespace":${JSON.stringify(namespace)}`;
    }
    if (metadata !== undefined) head += `,"metadata":${JSON.stringify(metadata)}`;
    return { function_id, namespace, head: bytesOf(head) };
  }

  fire(
    worker: string,
    { function_id, namespace, head }: FiringTarget,
    payload: FiringPayload,
    { waitingCalls, unsentBytes }: FiringBounds,
  ): Fired {
    const entry = this.#functions.find(function_id, namespace);
    const caller = this.#builtins.get(worker);
    if (!entry || !caller || entry.ready.length === 0) return "ordinary";
    const bytes = head.length + payload.json.length;
    const replica = this.#functions.pick(entry, bytes, this.#calls.bounds, caller);
    if (!replica) return "behind";
    const { callee, own, far } = replica;
    if (callee.isBuiltin || own !== undefined) return "ordinary";
    if (callee.inflightCalls >= waitingCalls || callee.connection.queuedBytes >= unsentBytes) {
      far?.ended();
      return "behind";
    }
    this.#calls.startVoid(caller, replica, this.#frame.write(head, payload));
    return "sent";
  }
}

/** The frame of a call, rewritten for each function; what follows the trace stays. */
class FiringFrame implements CallRemainder {
  memory: Uint8Array = new Uint8Array(SPARE_BYTES);
  view: DataView = viewOf(this.memory);
  idStart = 0;
  idEnd = 0;
  traceStart = 0;
  traceEnd = 0;
  dataStart = 0;
  end = 0;
  #payload: FiringPayload | undefined;

  /** Writes the frame of the next call; valid until the next one is written. */
  write(head: Uint8Array, payload: FiringPayload): this {
    if (payload !== this.#payload || SPARE_BYTES + head.length > this.traceStart) {
      this.#writePayload(payload, head.length);
    }
    const start = this.traceStart - head.length;
    this.memory.set(head, start);
    this.idStart = start + CALL_PREFIX.length;
    this.idEnd = this.idStart + UUID_BYTES;
    return this;
  }

  #writePayload(payload: FiringPayload, headBytes: number): void {
    const { json, traceparent } = payload;
    const isUsable = traceparent !== undefined && traceparent.length <= TRACEPARENT_CHARS_MAX;
    const trace = isUsable
      ? bytesOf(`${TRACEPARENT_KEY}${JSON.stringify(traceparent).slice(1)}`)
      : [];
    const room = SPARE_BYTES + Math.max(HEAD_BYTES, headBytes);
    const bytes = room + trace.length + DATA_KEY.length + json.length + 1;
    if (bytes > this.memory.length || this.memory.length > FRAME_BYTES_KEPT) {
      this.memory = new Uint8Array(Math.max(bytes, HEAD_BYTES * 2));
      this.view = viewOf(this.memory);
    }
    this.#payload = payload;
    this.traceStart = room;
    this.traceEnd = room + trace.length;
    this.dataStart = this.traceEnd + DATA_KEY.length;
    this.end = this.dataStart + json.length + 1;
    this.memory.set(trace, room);
    this.memory.set(DATA, this.traceEnd);
    this.memory.set(json, this.dataStart);
    this.memory[this.end - 1] = CLOSE_BRACE;
  }
}

const DATA = bytesOf(DATA_KEY);
