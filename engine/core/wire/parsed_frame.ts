/**
 * A frame that is not in canonical order, or whose payload has to be read: its message, and its
 * fields as they were written.
 *
 * Frames up to {@linkcode PARSED_BYTES_MAX} are parsed as a whole. Only calls, results and progress
 * may be larger: of those the payload stays in the frame's memory, and is parsed only where a
 * schema asks for it. A value that is nested too deeply is never parsed.
 *
 * @module
 */
import { parseMessage, readWorkerMessage } from "../../../sdk/typescript/wire/codec.ts";
import { EngineError } from "../../../sdk/typescript/wire/errors.ts";
import { isTooDeepBytes, JSON_DEPTH_MAX } from "../../../sdk/typescript/wire/json_depth.ts";
import type { Json, JsonObject, WorkerMessage } from "../../../sdk/typescript/wire/protocol.ts";
import type { Member, Outline } from "../../ports/connection.ts";
import { textOf } from "./bytes.ts";
import { fieldText } from "./json_scan.ts";
import { JSON_PARTS_MAX, membersOf, TOO_DEEP, TOO_MANY_PARTS } from "./members.ts";

/** Largest frame of a message that is neither call, result nor progress. */
export const PARSED_BYTES_MAX = 256 * 1024;
/** All fields of a larger call or result but its payload: metadata, baggage, an error. */
export const FIELDS_BYTES_MAX = 1024 * 1024;
/** Where the ids of a frame that is not JSON are looked for. */
const BROKEN_START_BYTES = 4_096;
/** Members that name a frame in an error; longer ones are not read. */
const NAME_BYTES_MAX = 8_192;

/** The payload of each message that may be large. */
const PAYLOADS: Readonly<Record<string, "data" | "result">> = {
  invokefunction: "data",
  invocationresult: "result",
  invocationprogress: "data",
};

/** Finds the type and the invocation id of a frame that is not valid JSON as a whole. */
const BROKEN = /^[ \t\r\n]{0,64}\{"type":"(\w{1,64})","invocation_id":"([^"\\]{1,128})"/;

/** A range of memory, valid while the frame is handled. */
export interface ByteRange {
  readonly memory: Uint8Array;
  readonly start: number;
  readonly end: number;
}

/** A payload that was not parsed; it is not nested too deeply. */
export interface RawPayload extends ByteRange {
  /** Objects, arrays and members in it. */
  readonly parts: number;
}

/** The fields of a frame as they were written. */
export interface RawFields {
  /** The JSON text of a field; `undefined` when the frame does not have it. */
  field(name: string): string | undefined;
  /** Where the payload is, if it was not parsed. */
  readonly payload?: RawPayload | undefined;
}

/** A frame with a valid message. */
export class ParsedFrame implements RawFields {
  /** Without its payload, if that was not parsed. */
  readonly message: WorkerMessage;
  readonly payload: RawPayload | undefined;
  /** The bytes of the whole frame. */
  readonly range: ByteRange;
  /** The frame, without a payload that was not parsed. */
  readonly #text: string;

  constructor(message: WorkerMessage, text: string, range: ByteRange, payload?: RawPayload) {
    this.message = message;
    this.range = range;
    this.payload = payload;
    this.#text = text;
  }

  field(name: string): string | undefined {
    const { payload } = this;
    if (payload === undefined || name !== PAYLOADS[this.message.type]) {
      return fieldText(this.#text, name);
    }
    return textOf(payload.memory, payload.start, payload.end);
  }

  /** A copy of the frame, for {@linkcode parseFrame} at a later time. */
  copy(): Uint8Array {
    const { memory, start, end } = this.range;
    return memory.slice(start, end);
  }
}

/** A frame that cannot be handled. */
export interface UnreadableFrame {
  readonly error: EngineError;
  /** The fields that say what it was for. */
  readonly fields: JsonObject;
  /** `size`: a valid message that is too large; it does not count as malformed. */
  readonly why: "malformed" | "depth" | "size";
}

/** Parses the frame in `memory` from `start` to `end`; `outline` is what is known of it. */
export function parseFrame(
  memory: Uint8Array,
  start: number,
  end: number,
  outline?: Outline,
): ParsedFrame | UnreadableFrame {
  if (end - start > PARSED_BYTES_MAX) {
    const { members } = outline ?? { members: membersOf(memory, start, end) };
    return parseLarge(memory, start, end, members);
  }
  if (isTooDeepBytes(memory, start, end)) {
    return tooDeep(memory, membersOf(memory, start, end) ?? []);
  }
  const text = textOf(memory, start, end);
  let fields: JsonObject | undefined;
  try {
    fields = parseMessage(text);
    return new ParsedFrame(readWorkerMessage(fields), text, { memory, start, end });
  } catch (thrown) {
    return malformed(thrown, fields ?? readBroken(text));
  }
}

/**
 * Parses a payload that was not parsed with its frame.
 *
 * @throws {EngineError} `invalid_payload` when it has too many parts or is not JSON.
 */
export function parsePayload({ memory, start, end, parts }: RawPayload, what: string): Json {
  if (parts > JSON_PARTS_MAX) throw new EngineError("invalid_payload", `${what} ${TOO_MANY_PARTS}`);
  try {
    return JSON.parse(textOf(memory, start, end));
  } catch (thrown) {
    const reason = (thrown as Error).message;
    throw new EngineError("invalid_payload", `${what}: expected JSON: ${reason}`);
  }
}

function parseLarge(
  memory: Uint8Array,
  start: number,
  end: number,
  members: readonly Member[] | undefined,
): ParsedFrame | UnreadableFrame {
  if (!members) {
    const error = new EngineError("bad_message", "message: expected a JSON object");
    const beginning = textOf(memory, start, Math.min(end, start + BROKEN_START_BYTES));
    return malformed(error, readBroken(beginning));
  }
  // The object itself is one level.
  if (members.some(({ depth }) => depth >= JSON_DEPTH_MAX)) return tooDeep(memory, members);
  const names = namesIn(memory, members);
  const type = typeof names.type === "string" ? names.type : "";
  const key = Object.hasOwn(PAYLOADS, type) ? PAYLOADS[type]! : undefined;
  const isPayload = (member: Member): boolean => key !== undefined && isKey(memory, member, key);
  const last = members.findLast(isPayload);
  const others = members.filter((member) => !isPayload(member));
  const bytes = others.reduce((sum, member) => sum + member.end - member.keyStart, 0);
  if (key === undefined || bytes > FIELDS_BYTES_MAX) return tooLarge(names, end - start, bytes);
  let text = `{${others.map((one) => textOf(memory, one.keyStart, one.end)).join(",")}}`;
  // `null` means absent, which the codec has to see; required payloads need any value.
  if (last && (isNull(memory, last) || type === "invocationprogress")) {
    text = `${text.slice(0, -1)}${others.length > 0 ? "," : ""}"${key}":null}`;
  }
  const payload = last && !isNull(memory, last) ? rangeOf(memory, last) : undefined;
  let fields: JsonObject | undefined;
  try {
    fields = parseMessage(text);
    return new ParsedFrame(readWorkerMessage(fields), text, { memory, start, end }, payload);
  } catch (thrown) {
    return malformed(thrown, fields ?? names);
  }
}

function malformed(thrown: unknown, fields: JsonObject): UnreadableFrame {
  return { error: thrown as EngineError, fields, why: "malformed" };
}

function tooDeep(memory: Uint8Array, members: readonly Member[]): UnreadableFrame {
  const fields = namesIn(memory, members);
  const error = new EngineError("bad_message", `message: ${TOO_DEEP}`);
  return { error, fields, why: "depth" };
}

function tooLarge(fields: JsonObject, bytes: number, fieldBytes: number): UnreadableFrame {
  const type = typeof fields.type === "string" ? fields.type : "message";
  const of = typeof fields.id === "string" ? ` of ${fields.id}` : "";
  const message = Object.hasOwn(PAYLOADS, type)
    ? `${type}: the fields beside the payload have ${fieldBytes} bytes, at most ` +
      `${FIELDS_BYTES_MAX} are accepted`
    : `${type}${of}: the message has ${bytes} bytes, at most ${PARSED_BYTES_MAX} are accepted; ` +
      "shorten its description, schemas, metadata or config";
  const limit = Object.hasOwn(PAYLOADS, type) ? FIELDS_BYTES_MAX : PARSED_BYTES_MAX;
  const details = { bytes, limit_bytes: limit };
  return { error: new EngineError("bad_message", message, { details }), fields, why: "size" };
}

/** The short text members of a frame: its type, ids and namespaces. */
function namesIn(memory: Uint8Array, members: readonly Member[]): JsonObject {
  const names: JsonObject = {};
  for (const { keyStart, keyEnd, start, end } of members) {
    if (memory[start] !== QUOTE || end - keyStart > NAME_BYTES_MAX) continue;
    try {
      const key = JSON.parse(textOf(memory, keyStart, keyEnd)) as string;
      names[key] = JSON.parse(textOf(memory, start, end)) as string;
    } catch {
      // Not JSON: the frame is refused in any case.
    }
  }
  return names;
}

const QUOTE = 0x22;

function isKey(memory: Uint8Array, { keyStart, keyEnd }: Member, key: string): boolean {
  // An escape takes six bytes per letter.
  if (keyEnd - keyStart > 6 * key.length + 2) return false;
  try {
    return JSON.parse(textOf(memory, keyStart, keyEnd)) === key;
  } catch {
    return false;
  }
}

function isNull(memory: Uint8Array, { start, end }: Member): boolean {
  return end - start < NAME_BYTES_MAX && textOf(memory, start, end).trim() === "null";
}

/** The value of a member, without white space behind it. */
function rangeOf(memory: Uint8Array, member: Member): RawPayload {
  let { end } = member;
  while (end > member.start && memory[end - 1]! <= 0x20) end--;
  return { memory, start: member.start, end, parts: member.parts };
}

function readBroken(text: string): JsonObject {
  const [, type, invocation_id] = BROKEN.exec(text) ?? [];
  return type === undefined || invocation_id === undefined ? {} : { type, invocation_id };
}
