/**
 * One route as an operation of OpenAPI: parameters, body, responses, errors and security.
 *
 * A function's schemas are of its payload and its result (PROTOCOL 6.2, 6.3): the body, the query
 * and the headers are members of them. A result schema without `status_code`, `headers` or a body
 * is that of the body itself. The errors are those that the engine produces (PROTOCOL 6.5).
 *
 * @module
 */
import type { FunctionView } from "../../../engine/ports/directory.ts";
import type { Json, JsonObject } from "../../../sdk/typescript/wire/protocol.ts";
import type { HttpTriggerConfig } from "../config.ts";
import { operationIdOf, type PathParam } from "./paths.ts";
import { FunctionSchema, isObject, type SchemaComponents } from "./schemas.ts";

/** Characters of a description. */
const DESCRIPTION_CHARS_MAX = 4_000;
/** Characters of the first line of a description that becomes the summary. */
const SUMMARY_CHARS_MAX = 120;
/** Parameters of an operation. */
const PARAMS_MAX = 200;
/** Alternatives of a result, and how deeply they may be nested. */
const ALTERNATIVES_MAX = 20;
const ALTERNATIVES_DEPTH_MAX = 4;

const JSON_TYPE = "application/json";
/** Headers that OpenAPI describes in other places. */
const OWN_HEADERS = new Set(["accept", "authorization", "content-type"]);
/** Methods whose body is read. */
const BODY_METHODS = new Set(["POST", "PUT", "PATCH", "DELETE"]);
/** Members of a result that make it a response. */
const RESPONSE_MEMBERS = ["status_code", "statusCode", "headers", "body", "body_base64"];

/** What the listener asks of every request. */
export interface ListenerRules {
  /** It asks for its own token. */
  readonly hasToken: boolean;
}

/** A route that is described. */
export interface DescribedRoute {
  readonly method: string;
  readonly path: string;
  readonly function_id: string;
  readonly config: HttpTriggerConfig;
  /** In the order of the path; with the names of the path's template. */
  readonly params: readonly PathParam[];
  /** `undefined`: its worker is away, or its schemas are not to be described. */
  readonly view: FunctionView | undefined;
}

/** The schemas of one function; several routes may share them. */
export interface FunctionSchemas {
  readonly request: FunctionSchema | undefined;
  readonly response: FunctionSchema | undefined;
}

/** What a function may answer with one status. */
interface Outcome {
  readonly status: string;
  /** `undefined`: no body. */
  readonly type: string | undefined;
  readonly schema: Json;
  readonly headers: JsonObject;
}

/** Makes the schemas of a function ready to be described. */
export function schemasOf(
  { function_id, namespace, request_schema, response_schema }: FunctionView,
  components: SchemaComponents,
): FunctionSchemas {
  const name = namespace === "default" ? function_id : `${namespace}_${function_id}`;
  const make = (schema: Json | undefined, what: string): FunctionSchema | undefined =>
    isObject(schema) ? new FunctionSchema(schema, `${name}_${what}`, components) : undefined;
  return { request: make(request_schema, "request"), response: make(response_schema, "response") };
}

/** Describes a route. */
export function operationOf(
  route: DescribedRoute,
  schemas: FunctionSchemas | undefined,
  rules: ListenerRules,
): JsonObject {
  const { method, path, view, function_id } = route;
  const operation: JsonObject = {
    operationId: operationIdOf(method, path),
    tags: [view?.worker_name ?? function_id.split("::")[0]!],
    ...textsOf(view?.description),
  };
  const parameters = parametersOf(route, schemas?.request);
  if (parameters.length > 0) operation.parameters = parameters;
  if (BODY_METHODS.has(method)) {
    const body = requestBodyOf(method, schemas?.request);
    if (body) operation.requestBody = body;
  }
  operation.responses = responsesOf(route, schemas?.response, rules);
  const security = securityOf(route.config, rules);
  if (security) operation.security = security;
  return operation;
}

function textsOf(text: string | undefined): JsonObject {
  if (text === undefined || text.trim() === "") return {};
  const whole = text.trim();
  const first = whole.split("\n", 1)[0]!.trim();
  const summary = cut(first, SUMMARY_CHARS_MAX);
  if (summary === whole) return { summary };
  return { summary, description: cut(whole, DESCRIPTION_CHARS_MAX) };
}

/** The start of a text, which ends between two characters. */
function cut(text: string, max: number): string {
  return text.length <= max ? text : `${text.slice(0, max - 1).toWellFormed()}…`;
}

function parametersOf(
  { params }: DescribedRoute,
  schema: FunctionSchema | undefined,
): JsonObject[] {
  const path = partOf(schema, "path_params");
  const found = params.map(({ key, name }): JsonObject => {
    const own = path === undefined ? undefined : schema!.member(path, key);
    const note = key === "*" ? { description: "The rest of the path" } : {};
    return { name, in: "path", required: true, ...note, schema: embedded(schema, own, "string") };
  });
  if (!schema) return found;
  found.push(...queryParameters(schema));
  const headers = partOf(schema, "headers");
  for (const [name, own] of headers === undefined ? [] : schema.members(headers)) {
    if (OWN_HEADERS.has(name.toLowerCase()) || !isToken(name)) continue;
    found.push(parameter(schema, name, "header", own, schema.requires(headers!, name)));
  }
  return found.slice(0, PARAMS_MAX);
}

function queryParameters(schema: FunctionSchema): JsonObject[] {
  const last = partOf(schema, "query_params");
  const all = partOf(schema, "query_params_all");
  const one = last === undefined ? new Map<string, Json>() : schema.members(last);
  const many = all === undefined ? new Map<string, Json>() : schema.members(all);
  const found: JsonObject[] = [];
  for (const [name, own] of new Map([...one, ...many])) {
    const required = last !== undefined && schema.requires(last, name);
    const shape = many.has(name) ? { style: "form", explode: true } : {};
    found.push({ ...parameter(schema, name, "query", own, required), ...shape });
  }
  return found;
}

function parameter(
  schema: FunctionSchema,
  name: string,
  where: "query" | "header",
  own: Json,
  required: boolean,
): JsonObject {
  const { description } = isObject(own) ? own : {};
  return {
    name,
    in: where,
    ...required && { required },
    ...typeof description === "string" && { description: cut(description, DESCRIPTION_CHARS_MAX) },
    schema: embedded(schema, own, "string"),
  };
}

function requestBodyOf(
  method: string,
  schema: FunctionSchema | undefined,
): JsonObject | undefined {
  const body = partOf(schema, "body");
  if (body === undefined) {
    // Requests that delete something rarely have one.
    return method === "DELETE" ? undefined : { content: { "*/*": {} } };
  }
  const shape = schema!.resolve(body);
  const headers = partOf(schema, "headers");
  const types = mediaTypesOf(schema!, headers, shape);
  const described = { schema: schema!.component(body, "body") };
  const required = schema!.requires(schema!.root, "body") && !allows(shape, "null");
  const content = Object.fromEntries(types.map((type): [string, Json] => [type, described]));
  return { ...required && { required }, content };
}

function responsesOf(
  route: DescribedRoute,
  schema: FunctionSchema | undefined,
  rules: ListenerRules,
): JsonObject {
  const errors = errorsOf(route, rules);
  const { enqueue } = route.config;
  if (enqueue !== undefined) return { ...errors, "202": receiptOf(enqueue) };
  const outcomes = schema ? outcomesOf(schema, schema.root) : [];
  const statuses = [...new Set(outcomes.map(({ status }) => status))].sort();
  const responses: JsonObject = {};
  if (statuses.length === 0) {
    const description = "What the function returns; its worker has not said what";
    responses["200"] = { description, content: { "*/*": {} } };
  }
  for (const status of statuses) {
    const own = outcomes.filter((outcome) => outcome.status === status);
    responses[status] = responseOf(own, Object.hasOwn(errors, status));
  }
  return { ...errors, ...responses };
}

/** The answer of a route that only enqueues; what its function returns goes nowhere. */
function receiptOf(queue: string): JsonObject {
  const schema: JsonObject = {
    type: "object",
    required: ["messageReceiptId"],
    properties: { messageReceiptId: { type: "string", description: "The id of the job" } },
  };
  return {
    description: `The job is on disk, in the queue ${queue}`,
    content: { [JSON_TYPE]: { schema } },
  };
}

/** One status that the function answers with; `isShared`: the engine answers with it as well. */
function responseOf(outcomes: readonly Outcome[], isShared: boolean): JsonObject {
  const byType = new Map<string, Json[]>();
  for (const { type, schema } of outcomes) {
    if (type === undefined) continue;
    byType.set(type, [...byType.get(type) ?? [], schema]);
  }
  if (isShared) byType.set(JSON_TYPE, [...byType.get(JSON_TYPE) ?? [], ERROR_SCHEMA]);
  const content = [...byType].map(([type, schemas]): [string, Json] => [
    type,
    { schema: schemas.length === 1 ? schemas[0]! : { anyOf: schemas } },
  ]);
  const headers = Object.fromEntries(
    outcomes.flatMap((outcome) => Object.entries(outcome.headers)),
  );
  return {
    description: "What the function returns",
    ...Object.keys(headers).length > 0 && { headers },
    ...content.length > 0 && { content: Object.fromEntries(content) },
  };
}

/** What a result schema says about responses. */
function outcomesOf(schema: FunctionSchema, root: Json): Outcome[] {
  const parts = alternativesOf(schema, root, 0).slice(0, ALTERNATIVES_MAX);
  if (!parts.some((part) => isResponse(schema, part))) {
    const shape = schema.resolve(root);
    const type = isTextOnly(shape) ? "text/plain" : JSON_TYPE;
    const described = schema.component(root, "");
    return [{ status: "200", type, schema: described, headers: {} }];
  }
  return parts.flatMap((part) => isResponse(schema, part) ? outcomesOfResponse(schema, part) : []);
}

function outcomesOfResponse(schema: FunctionSchema, part: Json): Outcome[] {
  const code = schema.member(part, "status_code") ?? schema.member(part, "statusCode");
  const statuses = statusesOf(code === undefined ? {} : schema.resolve(code));
  const fields = schema.member(part, "headers");
  const headers = responseHeaders(schema, fields);
  const isBytes = schema.member(part, "body_base64") !== undefined;
  const body = schema.member(part, "body");
  const shape = body === undefined ? {} : schema.resolve(body);
  // Without a content type even a text is sent as JSON.
  const types = isBytes && body === undefined
    ? namedTypes(schema, fields) ?? ["application/octet-stream"]
    : namedTypes(schema, fields) ?? [JSON_TYPE];
  const described = body === undefined ? {} : schema.component(body, "body");
  return statuses.flatMap((status): Outcome[] => {
    if (status === "204" || status === "304" || isOnly(shape, "null")) {
      return [{ status, type: undefined, schema: {}, headers }];
    }
    return types.map((type) => ({ status, type, schema: described, headers }));
  });
}

/** The parts of `anyOf` and `oneOf`, however deep; the schema itself if it has none. */
function alternativesOf(schema: FunctionSchema, part: Json, depth: number): Json[] {
  const shape = schema.resolve(part);
  if (!isObject(shape) || depth >= ALTERNATIVES_DEPTH_MAX) return [shape];
  const either = shape.anyOf ?? shape.oneOf;
  if (!Array.isArray(either) || isObject(shape.properties)) return [shape];
  return either.slice(0, ALTERNATIVES_MAX).flatMap((each) => {
    return alternativesOf(schema, each, depth + 1);
  });
}

function isResponse(schema: FunctionSchema, part: Json): boolean {
  return RESPONSE_MEMBERS.some((name) => schema.member(part, name) !== undefined);
}

function statusesOf(shape: Json): string[] {
  const { const: one, enum: many } = isObject(shape) ? shape : {};
  const values = Array.isArray(many) ? many : [one];
  const valid = values.filter((value): value is number =>
    Number.isInteger(value) && Number(value) >= 200 && Number(value) <= 599
  );
  if (valid.length === 0) return ["200"];
  return [...new Set(valid)].slice(0, ALTERNATIVES_MAX).map(String);
}

function responseHeaders(schema: FunctionSchema, fields: Json | undefined): JsonObject {
  if (fields === undefined) return {};
  const pairs: [string, Json][] = [];
  for (const [name, own] of schema.members(fields)) {
    if (OWN_HEADERS.has(name.toLowerCase()) || !isToken(name)) continue;
    pairs.push([name, { schema: schema.embed(own) }]);
  }
  return Object.fromEntries(pairs.slice(0, PARAMS_MAX));
}

/** The content types that the headers of a schema name. */
function namedTypes(schema: FunctionSchema, headers: Json | undefined): string[] | undefined {
  if (headers === undefined) return undefined;
  for (const [name, own] of schema.members(headers)) {
    if (name.toLowerCase() !== "content-type") continue;
    const shape = schema.resolve(own);
    const { const: one, enum: many } = isObject(shape) ? shape : {};
    const types = (Array.isArray(many) ? many : [one])
      .filter((type): type is string => typeof type === "string" && /^[^/\s]+\/[^/]+$/.test(type));
    if (types.length > 0) return types.slice(0, ALTERNATIVES_MAX);
  }
  return undefined;
}

function mediaTypesOf(
  schema: FunctionSchema,
  headers: Json | undefined,
  shape: Json,
): readonly string[] {
  return namedTypes(schema, headers) ?? [isTextOnly(shape) ? "text/plain" : JSON_TYPE];
}

const ERROR_SCHEMA: JsonObject = { $ref: "#/components/schemas/Error" };

/** The statuses that the engine itself produces for a route. */
function errorsOf({ method, config }: DescribedRoute, rules: ListenerRules): JsonObject {
  const errors: JsonObject = {};
  const add = (status: number, name: string): void => {
    errors[status] = { $ref: `#/components/responses/${name}` };
  };
  add(400, "BadRequest");
  if (rules.hasToken || config.auth_token !== undefined) add(401, "Unauthorized");
  add(403, "Forbidden");
  if (BODY_METHODS.has(method)) {
    add(413, "TooLarge");
    if (!config.lenient_body && !config.raw_body) add(415, "UnsupportedMediaType");
  }
  if (config.condition_function_id !== undefined) add(422, "ConditionNotMet");
  if (config.rate_limit) errors["429"] = rateLimited(config.rate_limit);
  else add(429, "TooManyRequests");
  add(500, "Failed");
  add(503, "Unavailable");
  add(504, "Timeout");
  errors["default"] = { $ref: "#/components/responses/Refused" };
  return errors;
}

function rateLimited({ requests, per_s, key }: NonNullable<HttpTriggerConfig["rate_limit"]>): Json {
  const who = key === "ip" ? "address" : `value of ${key.replace("header:", "the header ")}`;
  return {
    description:
      `More than ${requests} requests in ${per_s} s for each ${who}, or too many at once`,
    headers: RETRY_AFTER,
    content: { [JSON_TYPE]: { schema: ERROR_SCHEMA } },
  };
}

const RETRY_AFTER: JsonObject = {
  "Retry-After": { description: "Seconds to wait", schema: { type: "integer", minimum: 0 } },
};

function securityOf({ auth_token }: HttpTriggerConfig, { hasToken }: ListenerRules): Json {
  if (auth_token === undefined) {
    return hasToken ? [{ listenerToken: [] }, { listenerTokenInQuery: [] }] : null;
  }
  return [{ routeToken: [], ...hasToken && { listenerTokenInQuery: [] } }];
}

/** The components that operations refer to, apart from schemas of functions. */
export const SHARED_COMPONENTS: JsonObject = {
  responses: {
    BadRequest: failure("The body, the form or the query cannot be read"),
    Unauthorized: failure("The token is missing or wrong", {
      "WWW-Authenticate": { schema: { type: "string" } },
    }),
    Forbidden: failure("The host or the page that sends the request may not use this address"),
    TooLarge: failure("The body is too large"),
    UnsupportedMediaType: failure("A body of this type or charset is not supported"),
    ConditionNotMet: failure("The condition of the route rejected the request"),
    TooManyRequests: failure("Too many requests run at once", RETRY_AFTER),
    Failed: failure("The function, its condition or a middleware failed"),
    Unavailable: failure("No worker offers the function, its worker left, or the engine stops"),
    Timeout: failure("The function or a middleware took too long; the body may be empty"),
    Refused: failure("The function refused the request with a status of its own"),
  },
  securitySchemes: {
    listenerToken: { type: "http", scheme: "bearer", description: "auth_token of engine-http" },
    listenerTokenInQuery: {
      type: "apiKey",
      in: "query",
      name: "token",
      description: "auth_token of engine-http, where Authorization has that of the route",
    },
    routeToken: { type: "http", scheme: "bearer", description: "auth_token of the route" },
  },
};

/** The body of every error (PROTOCOL 6.5). */
export const ERROR_BODY: JsonObject = {
  type: "object",
  required: ["error"],
  properties: {
    error: {
      type: "object",
      required: ["code", "message"],
      properties: {
        code: { type: "string", description: "For programs, such as invalid_json" },
        message: { type: "string", description: "Text shown to people" },
        error_id: { type: "string", description: "The log of the engine has it, too" },
      },
    },
    skipped: { type: "boolean", description: "The condition of the route rejected the request" },
  },
};

function failure(description: string, headers?: JsonObject): JsonObject {
  return {
    description,
    ...headers && { headers },
    content: { [JSON_TYPE]: { schema: ERROR_SCHEMA } },
  };
}

/** A member of the payload that a request schema describes. */
function partOf(schema: FunctionSchema | undefined, name: string): Json | undefined {
  return schema?.member(schema.root, name);
}

function embedded(schema: FunctionSchema | undefined, own: Json | undefined, type: string): Json {
  return schema && own !== undefined && own !== true ? schema.embed(own) : { type };
}

function allows(shape: Json, type: string): boolean {
  const { type: own } = isObject(shape) ? shape : {};
  return own === type || (Array.isArray(own) && own.includes(type));
}

function isOnly(shape: Json, type: string): boolean {
  return isObject(shape) && (shape.type === type || (Array.isArray(shape.type) &&
    shape.type.every((each) => each === type)));
}

function isTextOnly(shape: Json): boolean {
  return isOnly(shape, "string");
}

/** Whether a name can be that of a header. */
function isToken(name: string): boolean {
  return /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/.test(name);
}
