/**
 * Reads the `invocation` of a registration (PROTOCOL 2.2) and checks it against the configuration.
 *
 * What a header or an address could be misused for is refused here, at the registration, with what
 * to do about it; addresses that names stand for are checked with every request.
 *
 * @module
 */
import { TIMEOUT_MS_MAX } from "../../sdk/typescript/wire/limits.ts";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import type { HttpFunctionSettings } from "../ports/config.ts";
import { addressProblem, PRIVATE } from "./addresses.ts";
import { hostOf, type HostPattern, isHostAllowed, patternFor, readHostPattern } from "./hosts.ts";

/** Time limit of a request whose function sets none. */
export const HTTP_FUNCTION_TIMEOUT_MS = 30_000;
/** Characters of a URL. */
export const URL_CHARS_MAX = 2_048;
/** Headers of one function. */
export const HEADERS_MAX = 64;
/** Characters of all names and values of the headers of one function. */
export const HEADERS_CHARS_MAX = 8_192;

const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"] as const;

/** Methods of requests. */
export type HttpMethod = typeof METHODS[number];

/** How a request proves where it comes from. `variable`: of the engine's environment or `.env`. */
export type HttpAuth =
  | { readonly type: "hmac" | "bearer"; readonly variable: string }
  | { readonly type: "api_key"; readonly header: string; readonly variable: string };

/** What a function requests. */
export interface HttpTarget {
  readonly url: URL;
  readonly method: HttpMethod;
  readonly timeout_ms: number;
  /** By lower-case name. */
  readonly headers: Readonly<Record<string, string>>;
  readonly auth: HttpAuth | undefined;
}

/** The settings, read. */
export interface TargetRules {
  readonly allow: readonly HostPattern[];
  readonly allow_private: boolean;
  readonly auth_env: ReadonlySet<string>;
}

/** Reads the settings, which were checked with the file. */
export function rulesOf({ allow, allow_private, auth_env }: HttpFunctionSettings): TargetRules {
  return {
    allow: allow.map(readHostPattern).filter((pattern) => typeof pattern !== "string"),
    allow_private,
    auth_env: new Set(auth_env),
  };
}

/** Reads `invocation`; a text says what is wrong with it. */
export function readTarget(invocation: JsonObject): HttpTarget | string {
  const { method = "POST", timeout_ms = HTTP_FUNCTION_TIMEOUT_MS } = invocation;
  const url = readUrl(invocation.url);
  if (typeof url === "string") return url;
  const known = METHODS.find((one) => one === method);
  if (known === undefined) return `its method has to be one of ${METHODS.join(", ")}`;
  if (!isTimeout(timeout_ms)) return `its timeout_ms has to be 1 to ${TIMEOUT_MS_MAX}`;
  const headers = readHeaders(invocation.headers);
  if (typeof headers === "string") return headers;
  const auth = readAuth(invocation.auth, headers);
  if (typeof auth === "string") return auth;
  return { url, method: known, timeout_ms, headers, auth };
}

/** Why a URL may not be requested; `undefined`: it may, as far as its text says. */
export function urlProblem(url: URL, rules: TargetRules): string | undefined {
  const host = hostOf(url).replace(/^\[|\]$/g, "");
  const problem = isAddress(host) ? addressProblem(host, rules.allow_private) : undefined;
  if (isHostAllowed(url, rules.allow)) return problem && `${url.origin} is ${problem}`;
  // What would be refused in any case need not be added.
  if (problem !== undefined && !problem.startsWith(PRIVATE)) return `${url.origin} is ${problem}`;
  return `${url.origin} is not among the allowed hosts; add "${patternFor(url)}" to ` +
    "engine.http_functions.allow in config.yaml" +
    (problem === undefined ? "" : `, with allow_private: true since it is ${PRIVATE}`);
}

/** Why a target may not be used; `undefined`: it may. */
export function targetProblem(
  { url, auth }: HttpTarget,
  rules: TargetRules,
  env: (name: string) => string | undefined,
): string | undefined {
  const problem = urlProblem(url, rules);
  if (problem !== undefined || !auth) return problem;
  const { variable } = auth;
  if (!rules.auth_env.has(variable)) {
    return `its auth names the environment variable ${variable}, which is not listed in ` +
      "engine.http_functions.auth_env of config.yaml";
  }
  if (!env(variable)) {
    return `its auth names the environment variable ${variable}, which is not set for the engine ` +
      "nor in .env beside config.yaml";
  }
  return undefined;
}

/** Whether the host of a URL is an address. */
export function isAddress(host: string): boolean {
  return host.includes(":") || /^\d+\.\d+\.\d+\.\d+$/.test(host);
}

/** Whether a text can be the value of a header. */
export function isHeaderValue(text: string): boolean {
  return /^[\t\x20-\x7e]*$/.test(text);
}

function readUrl(value: Json | undefined): URL | string {
  if (typeof value !== "string" || value.length > URL_CHARS_MAX || !URL.canParse(value)) {
    return `its url has to be an absolute address of up to ${URL_CHARS_MAX} characters, such as ` +
      "https://api.example.com/quote";
  }
  const url = new URL(value);
  if (url.protocol !== "https:" && url.protocol !== "http:") {
    return `its url has to begin with https:// or http://, not with ${url.protocol}`;
  }
  if (url.username !== "" || url.password !== "") {
    return "its url must not contain a user and password; use auth or headers";
  }
  if (url.port === "0") return "its url must not have the port 0";
  url.hash = "";
  return url;
}

function isTimeout(value: Json): value is number {
  return typeof value === "number" && Number.isInteger(value) && value >= 1 &&
    value <= TIMEOUT_MS_MAX;
}

/** Headers that the engine sets, or that would change how a request is framed or routed. */
const OWN_HEADERS: ReadonlySet<string> = new Set([
  "accept-encoding",
  "baggage",
  "connection",
  "content-encoding",
  "content-length",
  "content-type",
  "expect",
  "host",
  "http2-settings",
  "keep-alive",
  "te",
  "traceparent",
  "tracestate",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);
const HEADER_NAME = /^[\w!#$%&'*+.^`|~-]{1,256}$/;

function readHeaders(value: Json | undefined): Record<string, string> | string {
  if (value === undefined || value === null) return {};
  if (typeof value !== "object" || Array.isArray(value)) {
    return "its headers have to be an object of texts";
  }
  const entries = Object.entries(value);
  if (entries.length > HEADERS_MAX) return `it may have at most ${HEADERS_MAX} headers`;
  const headers: Record<string, string> = Object.create(null);
  let chars = 0;
  for (const [name, text] of entries) {
    const problem = headerProblem(name) ??
      (typeof text === "string" && isHeaderValue(text)
        ? undefined
        : `its header ${name} has to be a string of printable ASCII characters`);
    if (problem !== undefined) return problem;
    const key = name.toLowerCase();
    if (Object.hasOwn(headers, key)) return `its header ${key} is there twice`;
    headers[key] = text as string;
    chars += name.length + (text as string).length;
  }
  if (chars <= HEADERS_CHARS_MAX) return headers;
  return `its headers have ${chars} characters, at most ${HEADERS_CHARS_MAX} are accepted`;
}

function headerProblem(name: string): string | undefined {
  if (!HEADER_NAME.test(name)) {
    return `${JSON.stringify(name.slice(0, 64))} cannot be the name of a header`;
  }
  const key = name.toLowerCase();
  const isOwn = OWN_HEADERS.has(key) || /^(x-engine-|proxy-|sec-)/.test(key);
  return isOwn ? `the engine sets the header ${key} itself, or never sends it` : undefined;
}

function readAuth(
  value: Json | undefined,
  headers: Readonly<Record<string, string>>,
): HttpAuth | undefined | string {
  if (value === undefined || value === null) return undefined;
  if (typeof value !== "object" || Array.isArray(value)) return "its auth has to be an object";
  const { type, header } = value;
  switch (type) {
    case "hmac":
      return withVariable(value.secret_key, "secret_key", (variable) => ({ type, variable }));
    case "bearer":
      if (headers.authorization !== undefined) return twice("authorization");
      return withVariable(value.token_key, "token_key", (variable) => ({ type, variable }));
    case "api_key": {
      const problem = typeof header === "string" ? headerProblem(header) : NO_HEADER;
      if (problem !== undefined) return problem;
      const name = (header as string).toLowerCase();
      if (headers[name] !== undefined) return twice(name);
      const build = (variable: string): HttpAuth => ({ type, header: name, variable });
      return withVariable(value.value_key, "value_key", build);
    }
    default:
      return "the type of its auth has to be hmac, bearer or api_key";
  }
}

const NO_HEADER = "its auth of type api_key has to name a header";

function twice(header: string): string {
  return `its header ${header} and its auth set the same header`;
}

function withVariable(
  value: Json | undefined,
  key: string,
  build: (variable: string) => HttpAuth,
): HttpAuth | string {
  if (typeof value === "string" && /^[A-Za-z_]\w{0,127}$/.test(value)) return build(value);
  return `the ${key} of its auth has to name an environment variable of the engine`;
}
