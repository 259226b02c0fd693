/**
 * The table of open calls, found by either side's id.
 *
 * The engine's id of a call has the form of a UUID and encodes where its record is: a slot, and the
 * number of uses of that slot, so that a late result finds nothing. Records are reused, so keep no
 * reference beyond {@linkcode Invocations.close}. A caller's own ids are found by hash, per caller.
 *
 * @module
 */
import type { ObservedFunction } from "../ports/call_observer.ts";
import { type EndListener, Invocation, type Peer } from "./peer.ts";
import { bytesEqual, bytesOf, copyWords, NO_BYTES, viewOf } from "./wire/bytes.ts";
import { type CallerId, UUID_BYTES } from "./wire/frame_parts.ts";

/** Fields of a new call. */
export interface NewInvocation {
  readonly caller: Peer | undefined;
  /** Position of the caller's id as JSON text without quotes; it is copied. */
  readonly ids: CallerId;
  readonly callee: Peer | undefined;
  readonly function_id: string;
  readonly subject: ObservedFunction;
  readonly timeout_ms: number;
  readonly since: number;
  readonly bytes: number;
  /** Is called by the user of this table when the call ends. */
  readonly onEnd: EndListener | undefined;
}

/** Offset of the four hexadecimal digits that change with every use. */
const USES_AT = 9;
/** Both ids of a call. */
const IDS_BYTES = 2 * UUID_BYTES;
/** Records whose ids share memory: arrays of their own were four more objects per call. */
const CHUNK_RECORDS = 256;
const DIGITS = bytesOf("0123456789abcdef");

/** The open calls. */
export class Invocations {
  readonly #records: Invocation[] = [];
  readonly #free: Invocation[] = [];
  readonly #secret: string;
  /** The ids of the last records. */
  #chunk: Uint8Array = NO_BYTES;
  #chunkView: DataView = viewOf(NO_BYTES);
  /** Calls opened since the engine's start. */
  #opened = 0;

  /** The last 12 characters of `uuid` become part of every id. */
  constructor(uuid: string) {
    this.#secret = uuid.slice(-12);
  }

  /** Number of open calls. */
  get size(): number {
    return this.#records.length - this.#free.length;
  }

  /** Opens a call under a fresh id. */
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
    record.onEnd = opening.onEnd;
    if (opening.caller) {
      nameFor(record, opening.ids);
      opening.caller.waiting.add(record.hash, record.slot);
    }
    if (opening.callee) addTo(opening.callee, record);
    return record;
  }

  /** Gives a call without a callee its callee. */
  assign(record: Invocation, callee: Peer, bytes: number): void {
    record.callee = callee;
    record.bytes = bytes;
    addTo(callee, record);
  }

  /** The open call whose id is in `view` from `start` to `end`. */
  find(view: DataView, start: number, end: number): Invocation | undefined {
    if (end - start !== UUID_BYTES) return undefined;
    const record = this.#records[slotAt(view, start)];
    return record?.isOpen && bytesEqual(view, start, record.idsView, record.idAt, UUID_BYTES)
      ? record
      : undefined;
  }

  /** The open call with this id of the caller. */
  findOfCaller(caller: Peer, ids: CallerId): Invocation | undefined {
    const { waiting } = caller;
    for (let at = waiting.first(ids.hash); at >= 0; at = waiting.next(at, ids.hash)) {
      const record = this.#records[waiting.at(at)]!;
      if (isCalled(record, ids)) return record;
    }
    return undefined;
  }

  /** The calls that a caller waits for, oldest first. */
  ofCaller({ waiting }: Peer): Invocation[] {
    const records = waiting.all().map((slot) => this.#records[slot]!);
    return records.sort((one, other) => one.order - other.order);
  }

  /** All open calls, oldest first. */
  all(): Invocation[] {
    return this.#records.filter(({ isOpen }) => isOpen)
      .sort((one, other) => one.order - other.order);
  }

  /** Ends a call: its ids become invalid, and another call may reuse the record. */
  close(record: Invocation): void {
    record.caller?.waiting.remove(record.hash, record.slot);
    if (record.callee) removeFrom(record.callee, record);
    record.isOpen = false;
    record.caller = undefined;
    record.callerIdBytes = 0;
    if (record.callerId !== record.ids) {
      setCallerId(record, record.ids, record.idsView, record.idAt + UUID_BYTES);
    }
    record.callee = undefined;
    this.#free.push(record);
  }

  #grow(): Invocation {
    const slot = this.#records.length;
    const at = slot % CHUNK_RECORDS * IDS_BYTES;
    if (at === 0) {
      this.#chunk = new Uint8Array(CHUNK_RECORDS * IDS_BYTES);
      this.#chunkView = viewOf(this.#chunk);
    }
    this.#chunk.set(bytesOf(this.idOf(slot, 0)), at);
    const record = new Invocation(slot, this.#chunk, this.#chunkView, at);
    this.#records.push(record);
    return record;
  }

  /** The id of a slot in one of its uses. */
  idOf(slot: number, uses: number): string {
    const generation = Math.floor(uses / 0x10000);
    const [middle, high] = [hex(generation & 0xfff, 3), hex((generation / 0x1000) & 0xfff, 3)];
    return `${hex(slot, 8)}-${hex(uses & 0xffff, 4)}-4${middle}-8${high}-${this.#secret}`;
  }

  /** Writes the record's next id; mostly only four digits change. */
  #renew(record: Invocation): void {
    const { ids, idAt } = record;
    const uses = ++record.uses;
    if ((uses & 0xffff) === 0) ids.set(bytesOf(this.idOf(record.slot, uses)), idAt);
    const at = idAt + USES_AT;
    ids[at] = DIGITS[uses >>> 12 & 15]!;
    ids[at + 1] = DIGITS[uses >>> 8 & 15]!;
    ids[at + 2] = DIGITS[uses >>> 4 & 15]!;
    ids[at + 3] = DIGITS[uses & 15]!;
  }
}

/**
 * Appends a call to its callee's ring. Not a `Set`, which keeps deleted entries until it grows and
 * so becomes slow when calls come and go while others stay.
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
 * The number that eight hexadecimal digits encode. Other characters yield some number, too;
 * comparing the whole id reveals them.
 */
function slotAt(view: DataView, start: number): number {
  const high = digitsOf(view.getInt32(start));
  return (high << 16 | digitsOf(view.getInt32(start + 4))) >>> 0;
}

/** The number that four of them encode: the low half of each byte, plus nine for a letter. */
function digitsOf(word: number): number {
  const digits = (word & 0x0f0f0f0f) + (word >>> 6 & 0x01010101) * 9;
  const pairs = digits >>> 4 | digits;
  return pairs >>> 8 & 0xff00 | pairs & 0xff;
}

/** Copies the caller's id, since the frame that contains it is soon overwritten. */
function nameFor(record: Invocation, { view, idStart, idEnd, hash }: CallerId): void {
  const bytes = idEnd - idStart;
  if (bytes > UUID_BYTES) {
    const memory = new Uint8Array(bytes);
    setCallerId(record, memory, viewOf(memory), 0);
  }
  copyWords(record.callerIdView, record.callerIdAt, view, idStart, bytes);
  record.callerIdBytes = bytes;
  record.hash = hash;
}

function setCallerId(record: Invocation, memory: Uint8Array, view: DataView, at: number): void {
  record.callerId = memory;
  record.callerIdView = view;
  record.callerIdAt = at;
}

function isCalled(
  { callerIdView, callerIdAt, callerIdBytes }: Invocation,
  { view, idStart, idEnd }: CallerId,
): boolean {
  return callerIdBytes === idEnd - idStart &&
    bytesEqual(callerIdView, callerIdAt, view, idStart, callerIdBytes);
}
