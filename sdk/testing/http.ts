/**
 * HTTP requests to the triggers of a test engine (PROTOCOL 4.4 and 6), without a port.
 *
 * Not there: middleware, tokens, rate limits, CORS, forms, and bodies and responses as streams.
 *
 * @module
 */
import { EngineError, meaningOf } from "../typescript/wire/errors.ts";
import type { Json, JsonInput, JsonObject, RegisterTrigger } from "../typescript/wire/protocol.ts";
import { jsonCopy, type Routing } from "./routing.ts";

/** What a request has beside method and path. */
export interface TestRequest {
  /** A text is sent as it is, anything else as JSON. */
  readonly body?: JsonInput | undefined;
  /** Names may be of any case. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** A response. */
export interface TestResponse {
  /** Such as 200. */
  readonly status: number;
  /** Names are lower case; of several headers of one name the values are joined. */
  readonly headers: Readonly<Record<string, string>>;
  /** Parsed, if it is JSON; otherwise a text. */
  readonly body: unknown;
}

/** A route that fits a path. */
interface Match {
  readonly trigger: RegisterTrigger;
  readonly path: string;
  readonly params: Record<string, string>;
  /** Kinds of the segments: literal ones win over parameters, those over the wildcard. */
  readonly rank: string;
}

/** Sends a request to the route that fits. */
export async function sendRequest(
  routing: Routing,
  method: string,
  target: string,
  options: TestRequest,
): Promise<TestResponse> {
  const url = new URL(target, "http://localhost");
  const match = findRoute(routing, method.toUpperCase(), url.pathname);
  if (!match) return failure(404, new EngineError("NOT_FOUND", "Not Found"));
  const payload = payloadOf(match, method.toUpperCase(), url, options);
  const { trigger } = match;
  const { condition_function_id, enqueue } = (trigger.config ?? {}) as JsonObject;
  const { metadata, namespace } = trigger;
  try {
    if (typeof condition_function_id === "string") {
      const call = { function_id: condition_function_id, payload, namespace };
      if (await routing.call(call) === false) {
        return failure(422, new EngineError("CONDITION_NOT_MET", "Request condition not met"));
      }
    }
    if (typeof enqueue === "string") {
      const job = { queue: enqueue, function_id: trigger.function_id, data: payload };
      const receipt = await routing.call({ function_id: "engine::queue::enqueue", payload: job });
      return jsonResponse(202, receipt);
    }
    const { function_id } = trigger;
    return responseOf(await routing.call({ function_id, payload, metadata, namespace }));
  } catch (thrown) {
    const error = thrown as EngineError;
    return failure(meaningOf(error.code)?.status ?? 500, error);
  }
}

function findRoute(routing: Routing, method: string, path: string): Match | undefined {
  const fitting = routing.triggers("http").flatMap((trigger) => {
    const { api_path, http_method = "GET" } = (trigger.config ?? {}) as JsonObject;
    const wanted = String(http_method).toUpperCase();
    if (wanted !== method && !(method === "HEAD" && wanted === "GET")) return [];
    const match = fit(String(api_path), path);
    return match ? [{ trigger, path: String(api_path), ...match }] : [];
  });
  // Of equal routes the one that was registered last serves.
  return fitting.toSorted((a, b) => a.rank < b.rank ? -1 : a.rank > b.rank ? 1 : 0)
    .findLast((match, _i, all) => match.rank === all[0]!.rank);
}

function fit(route: string, path: string): Pick<Match, "params" | "rank"> | undefined {
  const wanted = route.replace(/^\//, "").split("/");
  const parts = path.replace(/^\//, "").split("/");
  const params: Record<string, string> = {};
  let rank = "";
  for (const [i, segment] of wanted.entries()) {
    if (segment === "*" && i === wanted.length - 1 && parts.length > i) {
      params["*"] = parts.slice(i).map(decode).join("/");
      return { params, rank: `${rank}2` };
    }
    const part = parts[i];
    if (part === undefined) return undefined;
    const isParam = segment.startsWith(":");
    if (isParam && part === "") return undefined;
    if (isParam) params[segment.slice(1)] = decode(part);
    else if (segment !== part) return undefined;
    rank += isParam ? "1" : "0";
  }
  return parts.length === wanted.length ? { params, rank } : undefined;
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // A broken escape is delivered as written.
  }
}

function payloadOf(
  { path, params }: Match,
  method: string,
  url: URL,
  { body, headers = {} }: TestRequest,
): JsonObject {
  const isText = typeof body === "string";
  const given = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]);
  const type = body === undefined ? {} : {
    "content-type": isText ? "text/plain" : "application/json",
  };
  const all: Record<string, string> = { host: "localhost", ...type, ...Object.fromEntries(given) };
  const isJson = /^application\/([\w.-]+\+)?json\b/.test(all["content-type"] ?? "");
  const read = body === undefined ? null : isText && isJson ? JSON.parse(body) : jsonCopy(body);
  const repeated = new Set([...url.searchParams.keys()].filter((key, i, keys) => {
    return keys.indexOf(key) !== i;
  }));
  const lists = [...url.searchParams.keys()].map((key) => [key, url.searchParams.getAll(key)]);
  return {
    ...{ path, method, path_params: params, headers: all, body: read },
    query_params: Object.fromEntries(url.searchParams),
    query_string: url.search.slice(1),
    ...repeated.size > 0 && { query_params_all: Object.fromEntries(lists) },
    trigger: { type: "http", path, method },
  };
}

const PARTS = ["status_code", "statusCode", "headers", "body", "body_base64"];

function responseOf(value: Json | undefined): TestResponse {
  if (value === undefined || value === null) return jsonResponse(200, {});
  const isParts = typeof value === "object" && !Array.isArray(value) &&
    PARTS.some((name) => Object.hasOwn(value, name));
  if (!isParts) {
    if (typeof value !== "string") return jsonResponse(200, value);
    return { status: 200, headers: { "content-type": "text/plain" }, body: value };
  }
  const { headers: given = {}, body_base64, ...rest } = value as JsonObject;
  const wanted = Number(rest.status_code ?? rest.statusCode ?? 200);
  const status = wanted >= 100 && wanted <= 599 ? wanted : 200;
  const headers = headersOf(given);
  if (typeof body_base64 === "string") {
    const bytes = Uint8Array.from(atob(body_base64), (letter) => letter.charCodeAt(0));
    return {
      status,
      headers: { "content-type": "application/octet-stream", ...headers },
      body: bytes,
    };
  }
  const type = headers["content-type"];
  if (type === undefined) {
    return jsonResponse(status, Object.hasOwn(rest, "body") ? rest.body : {}, headers);
  }
  const isJson = /json/.test(type);
  if (typeof rest.body !== "string" || !isJson) return { status, headers, body: rest.body ?? "" };
  return { status, headers, body: JSON.parse(rest.body) };
}

function headersOf(given: Json): Record<string, string> {
  const pairs: [string, Json][] = Array.isArray(given)
    ? given.map((line) => {
      const [, name = "", value = ""] = /^([^:]*):\s*(.*)$/.exec(String(line)) ?? [];
      return [name, value];
    })
    : Object.entries(given as JsonObject);
  return Object.fromEntries(
    pairs.map(([name, value]) => [name.toLowerCase(), [value].flat().map(String).join(", ")]),
  );
}

function jsonResponse(
  status: number,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): TestResponse {
  return { status, headers: { "content-type": "application/json", ...headers }, body };
}

function failure(status: number, { code, message, details }: EngineError): TestResponse {
  return jsonResponse(status, { error: { code, message, ...details && { details } } });
}
