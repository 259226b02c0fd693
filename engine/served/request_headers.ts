/**
 * The headers of a request for a function: PROTOCOL 2.2.
 *
 * Nothing that a caller or a worker chose can end a header: ids are percent-encoded, and a trace
 * context that is no header value is left out.
 *
 * @module
 */
import { createHmac } from "node:crypto";
import { type HttpTarget, isHeaderValue } from "./target.ts";

/** Characters of a baggage that is passed on: the least that W3C asks for. */
const BAGGAGE_CHARS_MAX = 8_192;
/** Characters of a traceparent: later versions may be longer than this one's 55. */
const TRACEPARENT_CHARS_MAX = 256;

/** The call that a request is made for. */
export interface ServedCall {
  /** As its worker named it. */
  readonly function_id: string;
  readonly invocation_id: string;
  readonly traceparent?: string | undefined;
  readonly baggage?: string | undefined;
  /** What is sent as body. */
  readonly body: Uint8Array | undefined;
  /** Milliseconds since 1970. */
  readonly now: number;
}

/** The headers of a request. */
export interface RequestHeaders {
  /** For every host. */
  readonly headers: Record<string, string>;
  /** For the origin of the function's URL only: its own headers, and what proves the sender. */
  readonly ownHeaders: Record<string, string>;
}

/** Makes the headers; `secret` is the value of the variable that `auth` names. */
export function requestHeaders(
  { headers: custom, auth }: HttpTarget,
  call: ServedCall,
  secret: string | undefined,
): RequestHeaders {
  const timestamp = String(Math.floor(call.now / 1_000));
  const headers: Record<string, string> = {
    accept: "application/json",
    // A compressed answer could be much larger than what is counted.
    "accept-encoding": "identity",
    "user-agent": "engine",
    "x-engine-Function-Path": headerText(call.function_id),
    "x-engine-Invocation-ID": call.invocation_id,
    "x-engine-Timestamp": timestamp,
    ...call.body && { "content-type": "application/json" },
    ...passedOn("traceparent", call.traceparent, TRACEPARENT_CHARS_MAX),
    ...passedOn("baggage", call.baggage, BAGGAGE_CHARS_MAX),
  };
  const ownHeaders: Record<string, string> = { ...custom };
  if (auth && secret !== undefined) {
    switch (auth.type) {
      case "hmac":
        ownHeaders["x-engine-Signature"] = signature(secret, timestamp, call.body);
        break;
      case "bearer":
        ownHeaders.authorization = `Bearer ${secret}`;
        break;
      case "api_key":
        ownHeaders[auth.header] = secret;
    }
  }
  return { headers, ownHeaders };
}

/** `sha256=<hex>` over `<timestamp>:<base64 of the body>`. */
export function signature(
  secret: string,
  timestamp: string,
  body: Uint8Array = new Uint8Array(),
): string {
  const mac = createHmac("sha256", secret).update(`${timestamp}:`);
  return `sha256=${mac.update(base64(body)).digest("hex")}`;
}

function base64(bytes: Uint8Array): string {
  return bytes.toBase64();
}

/** A text as the value of a header: other characters than printable ASCII are percent-encoded. */
function headerText(text: string): string {
  return text.toWellFormed().replace(/[^\x21-\x24\x26-\x7e]/gu, encodeURIComponent);
}

function passedOn(name: string, value: string | undefined, most: number): Record<string, string> {
  if (value === undefined || value === "" || value.length > most || !isHeaderValue(value)) {
    return {};
  }
  return { [name]: value };
}
