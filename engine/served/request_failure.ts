/**
 * Why a request failed, in words that say what to do: the error `http_request_failed`.
 *
 * Names the origin of the URL, never its path and query, which may hold secrets, nor an address
 * that its name stands for.
 *
 * @module
 */
import { EngineError } from "../../sdk/typescript/wire/errors.ts";

/** Characters of a reason of the platform. */
const REASON_CHARS_MAX = 200;

const REFUSED = "refuses the connection; start its service, or correct the url of the function";
const UNREACHABLE = "cannot be reached from this machine; check its name and the network";
const SLOW = "does not accept a connection in time; check that it runs and that no firewall is " +
  "between it and the engine";
const CLOSED = "closed the connection before it had answered; see its own log";
const UNKNOWN_NAME = "has a name that cannot be resolved; correct the url of the function";
const NO_TLS = "does not answer in TLS; correct its port, or register it with http://";

/** What the codes of Node and of the system mean. */
const MEANINGS: Readonly<Record<string, string>> = {
  ECONNREFUSED: REFUSED,
  ETIMEDOUT: SLOW,
  EHOSTUNREACH: UNREACHABLE,
  ENETUNREACH: UNREACHABLE,
  EADDRNOTAVAIL: UNREACHABLE,
  ECONNRESET: CLOSED,
  ECONNABORTED: CLOSED,
  EPIPE: CLOSED,
  ENOTFOUND: UNKNOWN_NAME,
  ENODATA: UNKNOWN_NAME,
  EAI_AGAIN: "has a name that cannot be resolved now; check the name server of this machine",
  HPE_HEADER_OVERFLOW: "answers with headers that are too large",
  ERR_SSL_WRONG_VERSION_NUMBER: NO_TLS,
  EPROTO: NO_TLS,
  EMFILE: "cannot be reached: the engine has no file descriptor left; raise ulimit -n",
};

/** The error of a request; `why` is a sentence about its origin, or what the platform threw. */
export function requestFailure(url: URL, why: unknown): EngineError {
  const code = codeOf(why);
  const text = typeof why === "string" ? why : meaningOf(code, why);
  const details = { url: url.origin, ...code !== undefined && { reason: code } };
  return new EngineError("http_request_failed", `${url.origin} ${text}`, { details, cause: why });
}

function meaningOf(code: string | undefined, thrown: unknown): string {
  const known = code === undefined || !Object.hasOwn(MEANINGS, code) ? undefined : MEANINGS[code];
  if (known !== undefined) return known;
  if (code?.startsWith("HPE_")) return `does not answer in HTTP/1.1 (${code})`;
  if (code && /CERT|SELF_SIGNED|ALTNAME|UNABLE_TO_(GET|VERIFY)/.test(code)) {
    return `has a certificate that is not accepted (${code}); renew it, correct the name in the ` +
      "url, or start the engine with NODE_EXTRA_CA_CERTS set to the file of its authority";
  }
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  return `cannot be requested: ${message.slice(0, REASON_CHARS_MAX)}`;
}

function codeOf(thrown: unknown): string | undefined {
  const code = (thrown as { code?: unknown } | null)?.code;
  return typeof code === "string" && /^\w{1,64}$/.test(code) ? code : undefined;
}
