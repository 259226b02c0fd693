/**
 * The calls that run now, found by either side's id.
 *
 * The engine's id of a call has the shape of a UUID and says where its record lies: a slot, and a
 * number that grows whenever the slot is used again, so that a late result finds nothing. Records
 * are used again, too: never keep one beyond {@linkcode Invocations.close}. A caller's own ids are
 * found by a hash, per caller.
 *
 * @module
 */
import type { ObservedCall, ObservedFunction } from "../ports/call_observer.ts";
import type { Due } from "./deadlines.ts";
import type { Peer } from "./peer.ts";

/** What a free record is about. */
const NOBODY: ObservedFunction = { function_id: "", namespace: "" };

/** One running call. */
export class Invocation implements Due, ObservedCall {
  due = 0;
  place = -1;
  /** The engine's id of it; empty while the record is free. */
  id = "";
  /** Who waits for the result; `undefined`: nobody. */
  caller: Peer | undefined;
  /** The caller's id of it, as it stands between quotes in JSON; empty without a caller. */
  callerId = "";
  /** Who executes it; `undefined`: the engine itself, or nobody yet. */
  callee: Peer | undefined;
  function_id = "";
  /** How long it may take in all. */
  timeout_ms = 0;
  /** Characters of the frame that went to the callee. */
  bytes = 0;
  /** Another call of the same caller whose id has the same hash. */
  next: Invocation | undefined;
  hash = 0;
  /** Neighbours in the ring of its callee's calls; itself while it is in none. */
  before: Invocation = this;
  after: Invocation = this;
  uses = 0;
  /** When it was opened, on the clock's now(). */
  since = 0;
  /** The function, as an observer counts it. */
  subject: ObservedFunction = NOBODY;
  readonly slot: number;
  readonly slotText: string;

  /** Makes the record of a slot. */
  constructor(slot: number) {
    this.slot = slot;
    this.slotText = hex(slot, 8);
  }
}

/** What a call starts with. */
export interface Opening {
  readonly caller: Peer | undefined;
  /** As it stands between quotes in JSON. May be a view into a frame: it is copied. */
  readonly callerId: string;
  /** Its hash, where that is known already. */
  readonly hash?: number | undefined;
  readonly callee: Peer | undefined;
  readonly function_id: string;
  readonly subject: ObservedFunction;
  readonly timeout_ms: number;
  readonly since: number;
  readonly bytes: number;
}

const ID_LENGTH = 36;
/** Two hexadecimal digits for each number that they can say. */
const HEX_8: readonly string[] = Array.from({ length: 0x100 }, (_, value) => hex(value, 2));

/** The running calls. */
export class Invocations {
  readonly #records: Invocation[] = [];
  readonly #free: Invocation[] = [];
  readonly #secret: string;
  #turn = -1;
  #tail = "";

  /** Makes an empty table; the last 12 characters of `uuid` become part of every id. */
  constructor(uuid: string) {
    this.#secret = uuid.slice(-12);
  }

  /** Calls that run. */
  get size(): number {
    return this.#records.length - this.#free.length;
  }

  /** Records a call under a fresh id. */
  open(opening: Opening): Invocation {
    const record = this.#free.pop() ?? this.#grow();
    record.id = this.#freshId(record);
    record.caller = opening.caller;
    record.callee = opening.callee;
    record.function_id = opening.function_id;
    record.subject = opening.subject;
    record.timeout_ms = opening.timeout_ms;
    record.since = opening.since;
    record.bytes = opening.bytes;
    if (opening.caller) {
      record.callerId = copied(opening.callerId);
      record.hash = opening.hash ?? hashOf(record.callerId);
      record.next = opening.caller.waiting.get(record.hash);
      opening.caller.waiting.set(record.hash, record);
    }
    if (opening.callee) addTo(opening.callee, record);
    return record;
  }

  /** Somebody executes a call from now on that nobody did. */
  assign(record: Invocation, callee: Peer, bytes: number): void {
    record.callee = callee;
    record.bytes = bytes;
    addTo(callee, record);
  }

  /** The call whose id stands in a text, from `start` to `end`; `undefined` when none runs. */
  find(text: string, start = 0, end: number = text.length): Invocation | undefined {
    if (end - start !== ID_LENGTH) return undefined;
    const record = this.#records[slotAt(text, start)];
    return record && record.id !== "" && text.startsWith(record.id, start) ? record : undefined;
  }

  /** The call that a caller knows under an id of its own. */
  findOfCaller(
    caller: Peer,
    callerId: string,
    hash: number = hashOf(callerId),
  ): Invocation | undefined {
    let record = caller.waiting.get(hash);
    while (record && record.callerId !== callerId) record = record.next;
    return record;
  }

  /** The call is over: its ids mean nothing any more, and its record may serve another. */
  close(record: Invocation): void {
    if (record.caller) this.#forgetCaller(record, record.caller);
    if (record.callee) removeFrom(record.callee, record);
    record.id = "";
    record.caller = undefined;
    record.callerId = "";
    record.callee = undefined;
    record.next = undefined;
    this.#free.push(record);
  }

  #forgetCaller(record: Invocation, { waiting }: Peer): void {
    const first = waiting.get(record.hash)!;
    if (first === record) {
      if (record.next) waiting.set(record.hash, record.next);
      else waiting.delete(record.hash);
      return;
    }
    let before = first;
    while (before.next !== record) before = before.next!;
    before.next = record.next;
  }

  #grow(): Invocation {
    const record = new Invocation(this.#records.length);
    this.#records.push(record);
    return record;
  }

  /** The id that a record has, or had, in one of its uses. */
  idOf(slot: number, uses: number): string {
    return this.#idFrom(hex(slot, 8), uses);
  }

  #freshId(record: Invocation): string {
    return this.#idFrom(record.slotText, ++record.uses);
  }

  #idFrom(slotText: string, uses: number): string {
    return `${slotText}-${HEX_8[(uses >>> 8) & 0xff]}${HEX_8[uses & 0xff]}${this.#tailOf(uses)}`;
  }

  /** What follows the digits that change with each use; seldom another one than last time. */
  #tailOf(uses: number): string {
    const turn = Math.floor(uses / 0x10000);
    if (turn !== this.#turn) {
      const [middle, high] = [hex(turn & 0xfff, 3), hex((turn / 0x1000) & 0xfff, 3)];
      this.#turn = turn;
      this.#tail = `-4${middle}-8${high}-${this.#secret}`;
    }
    return this.#tail;
  }
}

/**
 * Puts a call last in its callee's ring. Not in a `Set`: that one keeps the place of what was taken
 * out until it grows, so a record that comes and goes makes it slow while others stay.
 */
function addTo(callee: Peer, record: Invocation): void {
  callee.inflightCalls++;
  callee.inflightBytes += record.bytes;
  const first = callee.firstCall;
  if (!first) {
    callee.firstCall = record;
    return;
  }
  record.before = first.before;
  record.after = first;
  first.before.after = record;
  first.before = record;
}

function removeFrom(callee: Peer, record: Invocation): void {
  callee.inflightCalls--;
  callee.inflightBytes -= record.bytes;
  const { before, after } = record;
  if (callee.firstCall === record) callee.firstCall = after === record ? undefined : after;
  before.after = after;
  after.before = before;
  record.before = record;
  record.after = record;
}

function hex(value: number, digits: number): string {
  return value.toString(16).padStart(digits, "0");
}

/** The number that eight hexadecimal digits say; `NaN` when they are none. */
function slotAt(text: string, start: number): number {
  let value = 0;
  for (let at = start; at < start + 8; at++) {
    const code = text.charCodeAt(at);
    if (code >= 0x30 && code <= 0x39) value = value * 16 + code - 0x30;
    else if (code >= 0x61 && code <= 0x66) value = value * 16 + code - 0x57;
    else return NaN;
  }
  return value;
}

/** The same text without the frame it was cut from: a view would keep that alive. */
function copied(text: string): string {
  return (" " + text).slice(1);
}

/** By which a caller's id, the part of a text from `start` to `end`, is found. */
export function hashOf(text: string, start = 0, end: number = text.length): number {
  let hash = 0;
  for (let at = start; at < end; at++) hash = (Math.imul(hash, 31) + text.charCodeAt(at)) | 0;
  return hash;
}
