/**
 * Encodes OTLP requests, given in JSON form, as protobuf.
 *
 * Both forms derive from the same .proto files, so a table of field numbers is sufficient
 * (opentelemetry-proto 1.x, whose released field numbers never change). Members that are not in the
 * table are skipped.
 *
 * @module
 */
import type { Json, JsonObject } from "../../../sdk/typescript/wire/protocol.ts";

/** Encoding of a field: `[x]` is repeated, an object is a message. */
type Kind =
  | "string"
  | "bool"
  | "enum"
  | "int64"
  | "fixed32"
  | "fixed64"
  | "sfixed64"
  | "double"
  /** Hexadecimal text in JSON. */
  | "bytes"
  | Message
  | readonly ["fixed64" | "double" | Message | "string"];

/** Number and encoding of each field; a function for recursive messages. */
type Message = Readonly<Record<string, readonly [number: number, kind: Kind | (() => Kind)]>>;

const AnyValue: Message = {
  stringValue: [1, "string"],
  boolValue: [2, "bool"],
  intValue: [3, "int64"],
  doubleValue: [4, "double"],
  arrayValue: [5, () => ({ values: [1, [AnyValue]] })],
  kvlistValue: [6, () => ({ values: [1, [KeyValue]] })],
};
const KeyValue: Message = { key: [1, "string"], value: [2, AnyValue] };
const Resource: Message = { attributes: [1, [KeyValue]] };
const Scope: Message = {
  name: [1, "string"],
  version: [2, "string"],
  attributes: [3, [KeyValue]],
};

const Span: Message = {
  traceId: [1, "bytes"],
  spanId: [2, "bytes"],
  traceState: [3, "string"],
  parentSpanId: [4, "bytes"],
  name: [5, "string"],
  kind: [6, "enum"],
  startTimeUnixNano: [7, "fixed64"],
  endTimeUnixNano: [8, "fixed64"],
  attributes: [9, [KeyValue]],
  events: [11, [{
    timeUnixNano: [1, "fixed64"],
    name: [2, "string"],
    attributes: [3, [KeyValue]],
  }]],
  links: [13, [{
    traceId: [1, "bytes"],
    spanId: [2, "bytes"],
    traceState: [3, "string"],
    attributes: [4, [KeyValue]],
    flags: [6, "fixed32"],
  }]],
  status: [15, { message: [2, "string"], code: [3, "enum"] }],
  flags: [16, "fixed32"],
};

const LogRecord: Message = {
  timeUnixNano: [1, "fixed64"],
  severityNumber: [2, "enum"],
  severityText: [3, "string"],
  body: [5, AnyValue],
  attributes: [6, [KeyValue]],
  flags: [8, "fixed32"],
  traceId: [9, "bytes"],
  spanId: [10, "bytes"],
  observedTimeUnixNano: [11, "fixed64"],
};

const NumberPoint: Message = {
  startTimeUnixNano: [2, "fixed64"],
  timeUnixNano: [3, "fixed64"],
  asDouble: [4, "double"],
  asInt: [6, "sfixed64"],
  attributes: [7, [KeyValue]],
};
const HistogramPoint: Message = {
  startTimeUnixNano: [2, "fixed64"],
  timeUnixNano: [3, "fixed64"],
  count: [4, "fixed64"],
  sum: [5, "double"],
  bucketCounts: [6, ["fixed64"]],
  explicitBounds: [7, ["double"]],
  attributes: [9, [KeyValue]],
};
const Metric: Message = {
  name: [1, "string"],
  description: [2, "string"],
  unit: [3, "string"],
  gauge: [5, { dataPoints: [1, [NumberPoint]] }],
  sum: [7, {
    dataPoints: [1, [NumberPoint]],
    aggregationTemporality: [2, "enum"],
    isMonotonic: [3, "bool"],
  }],
  histogram: [9, {
    dataPoints: [1, [HistogramPoint]],
    aggregationTemporality: [2, "enum"],
  }],
};

/** A request of any signal, with one of the three members. */
const Request: Message = {
  resourceSpans: [1, [{
    resource: [1, Resource],
    scopeSpans: [2, [{ scope: [1, Scope], spans: [2, [Span]] }]],
  }]],
  resourceLogs: [1, [{
    resource: [1, Resource],
    scopeLogs: [2, [{ scope: [1, Scope], logRecords: [2, [LogRecord]] }]],
  }]],
  resourceMetrics: [1, [{
    resource: [1, Resource],
    scopeMetrics: [2, [{ scope: [1, Scope], metrics: [2, [Metric]] }]],
  }]],
};

/** The bytes of a request such as `{ resourceSpans: […] }`. */
export function encodeRequest(request: JsonObject): Uint8Array<ArrayBuffer> {
  const writer = new Writer();
  writeMessage(writer, Request, request);
  return writer.bytes();
}

function writeMessage(writer: Writer, message: Message, value: JsonObject): void {
  for (const [name, [number, kindOf]] of Object.entries(message)) {
    const member = value[name];
    if (member === undefined || member === null) continue;
    const kind = typeof kindOf === "function" ? kindOf() : kindOf;
    if (!isRepeated(kind)) writeField(writer, number, kind, member);
    else if (Array.isArray(member)) writeList(writer, number, kind[0], member);
  }
}

function isRepeated(kind: Kind): kind is Extract<Kind, readonly unknown[]> {
  return Array.isArray(kind);
}

/** Packs numbers into one field, as proto3 specifies. */
function writeList(
  writer: Writer,
  number: number,
  kind: "fixed64" | "double" | "string" | Message,
  items: readonly Json[],
): void {
  if (kind !== "fixed64" && kind !== "double") {
    for (const item of items) writeField(writer, number, kind, item);
    return;
  }
  writer.nested(number, () => {
    for (const item of items) writer[kind](item);
  });
}

function writeField(
  writer: Writer,
  number: number,
  kind: Exclude<Kind, readonly unknown[]>,
  value: Json,
): void {
  if (typeof kind === "object") {
    if (value === null || typeof value !== "object" || Array.isArray(value)) return;
    return writer.nested(number, () => writeMessage(writer, kind, value));
  }
  switch (kind) {
    case "string":
      return writer.lengthed(number, new TextEncoder().encode(String(value)));
    case "bytes":
      return writer.lengthed(number, bytesOf(value));
    case "bool":
      writer.varint(BigInt(number << 3));
      return writer.varint(value === true ? 1n : 0n);
    case "enum":
    case "int64":
      if (kind === "enum" && wholeOf(value) === 0n) return; // The default, which may be omitted.
      writer.varint(BigInt(number << 3));
      return writer.varint(wholeOf(value));
    case "fixed32":
      writer.varint(BigInt(number << 3 | 5));
      return writer.fixed32(Number(wholeOf(value) & 0xffffffffn));
    case "fixed64":
    case "sfixed64":
    case "double":
      writer.varint(BigInt(number << 3 | 1));
      return kind === "double" ? writer.double(value) : writer.fixed64(value);
  }
}

/** Decodes hexadecimal text; invalid text, which workers may send, becomes empty. */
function bytesOf(value: Json): Uint8Array {
  const text = String(value);
  return /^(?:[0-9a-f]{2})*$/i.test(text) ? Uint8Array.fromHex(text) : new Uint8Array();
}

/** An integer as 64 bits; an invalid one is 0. */
function wholeOf(value: Json): bigint {
  const text = typeof value === "number" ? String(Math.trunc(value)) : String(value);
  return /^-?\d{1,20}$/.test(text) ? BigInt.asUintN(64, BigInt(text)) : 0n;
}

/** A growing buffer. */
class Writer {
  #bytes = new Uint8Array(4_096);
  #length = 0;

  bytes(): Uint8Array<ArrayBuffer> {
    return this.#bytes.slice(0, this.#length);
  }

  varint(value: bigint): void {
    let rest = value;
    while (rest > 0x7fn) {
      this.#push(Number(rest & 0x7fn) | 0x80);
      rest >>= 7n;
    }
    this.#push(Number(rest));
  }

  fixed32(value: number): void {
    this.#room(4);
    new DataView(this.#bytes.buffer).setUint32(this.#length, value, true);
    this.#length += 4;
  }

  fixed64(value: Json): void {
    this.#room(8);
    new DataView(this.#bytes.buffer).setBigUint64(this.#length, wholeOf(value), true);
    this.#length += 8;
  }

  double(value: Json): void {
    this.#room(8);
    new DataView(this.#bytes.buffer).setFloat64(this.#length, Number(value), true);
    this.#length += 8;
  }

  lengthed(number: number, bytes: Uint8Array): void {
    this.varint(BigInt(number << 3 | 2));
    this.varint(BigInt(bytes.length));
    this.#room(bytes.length);
    this.#bytes.set(bytes, this.#length);
    this.#length += bytes.length;
  }

  /** Writes what `write` writes, preceded by its length. */
  nested(number: number, write: () => void): void {
    this.varint(BigInt(number << 3 | 2));
    const start = this.#length;
    write();
    const body = this.#bytes.slice(start, this.#length);
    this.#length = start;
    this.varint(BigInt(body.length));
    this.#room(body.length);
    this.#bytes.set(body, this.#length);
    this.#length += body.length;
  }

  #push(byte: number): void {
    this.#room(1);
    this.#bytes[this.#length++] = byte;
  }

  #room(bytes: number): void {
    const needed = this.#length + bytes;
    if (needed <= this.#bytes.length) return;
    const grown = new Uint8Array(Math.max(needed, this.#bytes.length * 2));
    grown.set(this.#bytes.subarray(0, this.#length));
    this.#bytes = grown;
  }
}
