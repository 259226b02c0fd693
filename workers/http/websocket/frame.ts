/**
 * Messages as they are sent to clients: from a value of a function to the bytes of one frame, made
 * once however many clients get it.
 *
 * @module
 */
import { EngineError } from "../../../sdk/typescript/wire/errors.ts";
import type { Json } from "../../../sdk/typescript/wire/protocol.ts";
import type { Connection } from "../../../engine/ports/connection.ts";

/** Largest message to a client. */
export const SENT_BYTES_MAX: number = 16 * 1024 * 1024;

/** Longest reason of a close frame, in bytes. */
export const REASON_BYTES_MAX = 123;

/** Codes that an application may close with: those of RFC 6455 for servers, and its own. */
export function isCloseCode(code: unknown): code is number {
  if (typeof code !== "number" || !Number.isInteger(code)) return false;
  return CLOSE_CODES.has(code) || (code >= 3_000 && code <= 4_999);
}

const CLOSE_CODES = new Set([1000, 1001, 1003, 1007, 1008, 1009, 1011, 1012, 1013]);
const ENCODER = new TextEncoder();
const NO_PREFIX = new Uint8Array();

/** One message, ready to be sent. */
export interface Frame {
  readonly bytes: Uint8Array;
  readonly isBinary: boolean;
}

/**
 * A value as a message: a text as it is, `{data_base64}` as bytes, any other value as JSON.
 *
 * @throws {EngineError} `INVALID_ARGUMENTS`
 */
export function frameOfValue(value: Json): Frame {
  if (value !== null && typeof value === "object" && !Array.isArray(value)) {
    const { data_base64, ...others } = value;
    if (typeof data_base64 === "string" && Object.keys(others).length === 0) {
      return binaryFrame(data_base64);
    }
  }
  return textFrame(typeof value === "string" ? value : JSON.stringify(value));
}

/** @throws {EngineError} `INVALID_ARGUMENTS` */
export function binaryFrame(base64: string): Frame {
  let bytes: Uint8Array;
  try {
    bytes = Uint8Array.fromBase64(base64);
  } catch {
    throw new EngineError("INVALID_ARGUMENTS", "data_base64 is not base64");
  }
  return checked({ bytes, isBinary: true });
}

function textFrame(text: string): Frame {
  return checked({ bytes: ENCODER.encode(text), isBinary: false });
}

function checked(frame: Frame): Frame {
  const { length } = frame.bytes;
  if (length <= SENT_BYTES_MAX) return frame;
  const message = `A message to a client has at most ${SENT_BYTES_MAX} bytes, this one ${length}`;
  throw new EngineError("INVALID_ARGUMENTS", message);
}

/** Queues a message; the bytes are copied. */
export function sendFrame(connection: Connection, { bytes, isBinary }: Frame): void {
  if (isBinary) connection.sendBinary(bytes);
  else connection.forward(NO_PREFIX, 0, bytes, 0, bytes.length);
}
