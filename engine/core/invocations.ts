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
import type { ObservedFunction } from "../ports/call_observer.ts";
import { Invocation, type Peer } from "./peer.ts";
import { bytesEqual, bytesOf, copyWords, NO_BYTES, viewOf } from "./wire/bytes.ts";
import { type CallerId, UUID_BYTES } from "./wire/frame_parts.ts";

/** What a call starts with. */
export interface NewInvocation {
  readonly caller: Peer | undefined;
  /** Where its id of the call stands, as between quotes in JSON: it is copied. */
  readonly ids: CallerId;
  readonly callee: Peer | undefined;
  readonly function_id: string;
  readonly subject: ObservedFunction;
  readonly timeout_ms: number;
  readonly since: number;
  readonly bytes: number;
}

/** Where in an id the four digits stand that change with each use. */
const USES_AT = 9;
const DIGITS = bytesOf("0123456789abcdef");

/** The running calls. */
export class Invocations {
  readonly #records: Invocation[] = [];
  readonly #free: Invocation[] = [];
  readonly #secret: string;
  /** Calls that were ever opened. */
  #opened = 0;

  /** Makes an empty table; the last 12 characters of `uuid` become part of every id. */
  constructor(uuid: string) {
    this.#secret = uuid.slice(-12);
  }

  /** Calls that run. */
  get size(): number {
    return this.#records.length - this.#free.length;
  }

  /** Records a call under a fresh id. */
  open(opening: NewInvocation): Invocation {
    const record = this.#free.pop() ?? this.#grow();
    this.#renew(record);
    record.isOpen = true;
    record.order = ++this.#opened;
    record.caller = opening.caller;
    record.callee = opening.callee;
    record.function_id = opening.function_id;
    record.subject = opening.subject;
    record.timeout_ms = opening.timeout_ms;
    record.since = opening.since;
    record.bytes = opening.bytes;
    if (opening.caller) {
      nameFor(record, opening.ids);
      opening.caller.waiting.add(record.hash, record.slot);
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

  /** The call whose id stands in `view` from `start` to `end`; `undefined` when none runs. */
  find(view: DataView, start: number, end: number): Invocation | undefined {
    if (end - start !== UUID_BYTES) return undefined;
    const record = this.#records[slotAt(view, start)];
    return record?.isOpen && bytesEqual(view, start, record.idView, 0, UUID_BYTES)
      ? record
      : undefined;
  }

  /** The call that a caller knows under an id of its own. */
  findOfCaller(caller: Peer, ids: CallerId): Invocation | undefined {
    const { waiting } = caller;
    for (let at = waiting.first(ids.hash); at >= 0; at = waiting.next(at, ids.hash)) {
      const record = this.#records[waiting.at(at)]!;
      if (isCalled(record, ids)) return record;
    }
    return undefined;
  }

  /** The calls that a caller waits for, in the order in which they came. */
  ofCaller({ waiting }: Peer): Invocation[] {
    const records = waiting.all().map((slot) => this.#records[slot]!);
    return records.sort((one, other) => one.order - other.order);
  }

  /** The call is over: its ids mean nothing any more, and its record may serve another. */
  close(record: Invocation): void {
    record.caller?.waiting.remove(record.hash, record.slot);
    if (record.callee) removeFrom(record.callee, record);
    record.isOpen = false;
    record.caller = undefined;
    record.callerIdBytes = 0;
    if (record.callerIdView.byteLength > UUID_BYTES) setCallerId(record, NO_BYTES);
    record.callee = undefined;
    this.#free.push(record);
  }

  #grow(): Invocation {
    const slot = this.#records.length;
    // So small an array keeps its bytes within itself, as what an encoder makes does not.
    const id = new Uint8Array(UUID_BYTES);
    id.set(bytesOf(this.idOf(slot, 0)));
    const record = new Invocation(slot, id);
    this.#records.push(record);
    return record;
  }

  /** The id that a record has, or had, in one of its uses. */
  idOf(slot: number, uses: number): string {
    const generation = Math.floor(uses / 0x10000);
    const [middle, high] = [hex(generation & 0xfff, 3), hex((generation / 0x1000) & 0xfff, 3)];
    return `${hex(slot, 8)}-${hex(uses & 0xffff, 4)}-4${middle}-8${high}-${this.#secret}`;
  }

  /** Gives a record its next id, in which all but four digits stay for a long time. */
  #renew(record: Invocation): void {
    const { id } = record;
    const uses = ++record.uses;
    if ((uses & 0xffff) === 0) id.set(bytesOf(this.idOf(record.slot, uses)));
    id[USES_AT] = DIGITS[uses >>> 12 & 15]!;
    id[USES_AT + 1] = DIGITS[uses >>> 8 & 15]!;
    id[USES_AT + 2] = DIGITS[uses >>> 4 & 15]!;
    id[USES_AT + 3] = DIGITS[uses & 15]!;
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

/**
 * The number that eight hexadecimal digits say. Other characters make some number of it, too: whose
 * id it is shows when all of it is compared.
 */
function slotAt(view: DataView, start: number): number {
  const high = digitsOf(view.getInt32(start));
  return (high << 16 | digitsOf(view.getInt32(start + 4))) >>> 0;
}

/** The number that four of them say: the low half of each, and nine more for a letter. */
function digitsOf(word: number): number {
  const digits = (word & 0x0f0f0f0f) + (word >>> 6 & 0x01010101) * 9;
  const pairs = digits >>> 4 | digits;
  return pairs >>> 8 & 0xff00 | pairs & 0xff;
}

/** Copies a caller's id: the frame that it stands in is gone soon. */
function nameFor(record: Invocation, { view, idStart, idEnd, hash }: CallerId): void {
  const bytes = idEnd - idStart;
  if (record.callerIdView.byteLength < bytes) {
    setCallerId(record, new Uint8Array(Math.max(bytes, UUID_BYTES)));
  }
  copyWords(record.callerIdView, 0, view, idStart, bytes);
  record.callerIdBytes = bytes;
  record.hash = hash;
}

function setCallerId(record: Invocation, memory: Uint8Array): void {
  record.callerId = memory;
  record.callerIdView = viewOf(memory);
}

function isCalled({ callerIdView, callerIdBytes }: Invocation, ids: CallerId): boolean {
  const { view, idStart, idEnd } = ids;
  return callerIdBytes === idEnd - idStart &&
    bytesEqual(callerIdView, 0, view, idStart, callerIdBytes);
}
