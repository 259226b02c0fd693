/**
 * Requests to HTTP triggers: made from a route and a draft, or from the payload of a call.
 *
 * A path parameter becomes exactly one segment, whatever its value; the remainder behind `*` may be
 * several. Errors are reported by field.
 *
 * @module
 */
import type { Json } from "../../../../../sdk/typescript/wire/protocol.ts";
import { isObject } from "../../kit/json.ts";

/** Headers that the console's HTTP client sets itself. */
const OWN_HEADERS =
  /^(host|connection|content-length|transfer-encoding|upgrade|keep-alive|te|trailer)$/i;
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/** The route of an HTTP trigger. */
export interface HttpRoute {
  /** In upper case. */
  readonly method: string;
  /** With a leading slash. */
  readonly path: string;
  /** Names of its path parameters in order; `*` is the remainder of the path. */
  readonly params: readonly string[];
}

/** A name and its value. */
export interface TypedPair {
  readonly name: string;
  readonly value: string;
}

/** A request that is being filled in. */
export interface RequestDraft {
  readonly method: string;
  readonly params: Readonly<Record<string, string>>;
  readonly query: readonly TypedPair[];
  readonly headers: readonly TypedPair[];
  /** Empty: no body. */
  readonly body: string;
}

/** A request ready to be sent. */
export interface BuiltRequest {
  /** Begins with a slash; includes the query string. */
  readonly path: string;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: string | undefined;
  /** Errors by field: `params.id`, `headers.0`, `body`. Empty when it may be sent. */
  readonly problems: Readonly<Record<string, string>>;
}

/** The route of a trigger of type `http`; `undefined` without a path. */
export function routeOf(config: Json): HttpRoute | undefined {
  if (!isObject(config) || typeof config["api_path"] !== "string") return undefined;
  const { api_path, http_method } = config;
  const path = api_path.startsWith("/") ? api_path : `/${api_path}`;
  const method = typeof http_method === "string" && http_method.trim() !== ""
    ? http_method.trim().toUpperCase()
    : "GET";
  const params = path.split("/").flatMap((segment) =>
    segment === "*" ? ["*"] : segment.startsWith(":") ? [segment.slice(1)] : []
  );
  return { method, path, params };
}

/** Whether requests with this method usually have a body. */
export function takesBody(method: string): boolean {
  return method === "POST" || method === "PUT" || method === "PATCH";
}

/**
 * The request that gives the handler a payload. A payload shaped like that of HTTP handlers is
 * taken apart, any other becomes the body. Missing path parameters get their names as values.
 */
export function draftOfCall(route: HttpRoute, payload: Json | undefined): RequestDraft {
  const members = isObject(payload) ? payload : {};
  const isRequest = ["body", "path_params", "query_params", "headers"].some((name) =>
    Object.hasOwn(members, name)
  );
  const body = isRequest ? members["body"] : payload;
  const pairs = (name: string): TypedPair[] =>
    Object.entries(textsOf(members[name])).map(([name, value]) => ({ name, value }));
  const given = textsOf(members["path_params"]);
  return {
    method: route.method,
    params: Object.fromEntries(
      route.params.map((name) => [name, given[name] || placeholderFor(name)]),
    ),
    query: pairs("query_params"),
    headers: pairs("headers"),
    body: takesBody(route.method) && body !== undefined && body !== null
      ? JSON.stringify(body)
      : "",
  };
}

/** Makes the request and checks its fields. */
export function buildRequest(route: HttpRoute, draft: RequestDraft): BuiltRequest {
  const problems: Record<string, string> = {};
  const path = route.path.split("/").map((segment) => {
    if (segment !== "*" && !segment.startsWith(":")) return encodeSegment(decode(segment));
    return fillIn(segment === "*" ? "*" : segment.slice(1), draft, problems);
  }).join("/");
  const query = new URLSearchParams(
    draft.query.filter(({ name }) => name !== "").map(({ name, value }) => [name, value]),
  ).toString();
  const headers = readHeaders(draft.headers, problems);
  const body = draft.body === "" ? undefined : draft.body;
  const isTyped = headers.some(([name]) => name.toLowerCase() === "content-type");
  const isJson = body !== undefined && parses(body);
  if (body !== undefined && !isTyped && !isJson) {
    problems["body"] = "is not JSON; correct it, or name its content-type in a header";
  }
  if (body !== undefined && (draft.method === "GET" || draft.method === "HEAD")) {
    problems["body"] = `cannot be sent with ${draft.method}`;
  }
  return {
    path: query === "" ? path : `${path}?${query}`,
    headers: body !== undefined && !isTyped && isJson
      ? [...headers, ["content-type", "application/json"]]
      : headers,
    body,
    problems,
  };
}

/** The members of an object that are no objects, as texts. */
function textsOf(value: Json | undefined): Record<string, string> {
  if (!isObject(value)) return {};
  return Object.fromEntries(
    Object.entries(value).filter(([, member]) => member === null || typeof member !== "object")
      .map(([name, member]) => [name, String(member)]),
  );
}

function placeholderFor(name: string): string {
  return name === "*" ? "" : name.toUpperCase();
}

function fillIn(name: string, draft: RequestDraft, problems: Record<string, string>): string {
  const value = Object.hasOwn(draft.params, name) ? draft.params[name]! : "";
  if (name === "*") return value.split("/").map(encodeSegment).join("/");
  if (value === "") problems[`params.${name}`] = "is required";
  else if (value === "." || value === "..") {
    problems[`params.${name}`] = "would be taken for a step in the path";
  }
  return encodeSegment(value);
}

function readHeaders(
  typed: readonly TypedPair[],
  problems: Record<string, string>,
): (readonly [string, string])[] {
  return typed.flatMap(({ name, value }, i) => {
    if (name === "" && value === "") return [];
    const problem = !TOKEN.test(name)
      ? "is not the name of a header"
      : OWN_HEADERS.test(name)
      ? "is set by itself"
      : /[^\t\x20-\x7e\x80-\xff]/.test(value)
      ? "has characters that a header cannot hold"
      : undefined;
    if (problem) problems[`headers.${i}`] = problem;
    return problem ? [] : [[name.toLowerCase(), value.trim()] as const];
  });
}

/** A decoded segment of a route; one with invalid escapes stays as it is. */
function decode(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

function encodeSegment(text: string): string {
  return encodeURIComponent(text.toWellFormed())
    .replaceAll("%3A", ":").replaceAll("%40", "@").replaceAll("%2C", ",");
}

function parses(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
