/**
 * What each key of config.yaml and engine.worker.yaml means, in a sentence: for editors, which show
 * it, and for the reference in docs/.
 *
 * Keys are paths; `[]` is any item of a list, `{}` any key of a mapping, and the `config` of a
 * built-in worker begins with the worker's name. A test compares the paths with the keys that the
 * code reads.
 *
 * @module
 */
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";

/** The dialect of the schemas; editors support it. */
export const SCHEMA_DIALECT = "http://json-schema.org/draft-07/schema#";

/** Texts by path. */
export type ReferenceTexts = Readonly<Record<string, string>>;

const TLS_TEXTS = {
  cert: "PEM file of the certificate and those of its issuers, relative to config.yaml",
  key: "PEM file of the private key, relative to config.yaml",
};

/** Keys of config.yaml. */
export const CONFIG_TEXTS: ReferenceTexts = {
  "engine": "The port for workers, and what one worker may use",
  "engine.host": "Address of the port for workers. Default: 127.0.0.1",
  "engine.port": "Port that workers and the command line connect to. Default: 49134",
  "engine.auth_token": "Token that workers must send. Default: none is required",
  "engine.insecure":
    "Allows an address that other machines reach without auth_token. Default: false",
  "engine.allowed_origins":
    "Origins of web pages that may connect, besides those of this machine. Default: none",
  "engine.transport": "raw (default), or deno-serve: slower, and for trusted peers only",
  "engine.tls": "Makes the port speak TLS; workers then dial wss://",
  "engine.tls.cert": TLS_TEXTS.cert,
  "engine.tls.key": TLS_TEXTS.key,
  "engine.max_message_bytes": "Longest message. Default: 64 MiB; at most 255 MiB",
  "engine.invocation_timeout_ms": "Deadline of calls that set no timeout_ms. Default: 600000",
  "engine.validate_payloads": "Checks payloads against request_format. Default: true",
  "engine.shared_functions":
    "Functions that workers with different names may offer, such as tools::*. Default: all",
  "engine.max_inflight_calls_per_worker":
    "Open calls of one worker; further ones fail with overloaded. Default: 10000",
  "engine.max_inflight_bytes_per_worker":
    "Bytes of unfinished calls and unsent frames of one worker. Default: 256 MiB",
  "engine.memory_mb":
    "Memory for everything that peers send, in MiB. Default: half of the memory, at most 2048",
  "engine.heartbeat_ms":
    "Time between pings; a worker that does not answer one is suspect. Default: 20000",
  "engine.silence_ms": "A connection that sends nothing for this long is closed. Default: 60000",
  "engine.listeners": "More ports for workers, each with tokens and rules of its own",
  "engine.listeners[].name": "Name of the listener in logs and lists",
  "engine.listeners[].host": "Address. Default: 127.0.0.1",
  "engine.listeners[].port": "Port",
  "engine.listeners[].auth_token": "Token that workers must send",
  "engine.listeners[].tokens": "Accepts tokens of engine token create. Default: false",
  "engine.listeners[].insecure": "Allows an address that other machines reach without any token",
  "engine.listeners[].allowed_origins": "Origins of web pages that may connect",
  "engine.listeners[].tls": "Makes the port speak TLS",
  "engine.listeners[].tls.cert": TLS_TEXTS.cert,
  "engine.listeners[].tls.key": TLS_TEXTS.key,
  "engine.listeners[].middleware_function_id": "Function that gets every call of the listener",
  "engine.listeners[].rbac": "Access rules",
  "engine.listeners[].rbac.auth_function_id": "Function that decides about each connection",
  "engine.listeners[].rbac.auth_timeout_ms":
    "How long this function and each hook may take. Default: 10000",
  "engine.listeners[].rbac.expose_functions": "Which functions may be called: rules, in order",
  "engine.listeners[].rbac.on_function_registration_function_id":
    "Function that decides about registrations of functions",
  "engine.listeners[].rbac.on_trigger_registration_function_id":
    "Function that decides about registrations of triggers",
  "engine.listeners[].rbac.on_trigger_type_registration_function_id":
    "Function that decides about registrations of trigger types",
  "engine.http_functions": "Limits on the URLs that functions served by HTTP may request",
  "engine.http_functions.allow": "Hosts, such as api.example.com or *.example.com:8443",
  "engine.http_functions.allow_private":
    "Allows addresses of private networks and of this machine. Default: false",
  "engine.http_functions.auth_env":
    "Variables of the engine's environment or of `.env` that their auth may use",
  "engine.cluster": "Joins several engines into a cluster, over NATS",
  "engine.cluster.name": "Name that all engines of the cluster share",
  "engine.cluster.nats": "Addresses of NATS nodes, such as nats://n1:4222",
  "engine.cluster.user": "User name for NATS, with password",
  "engine.cluster.password": "Password of that user",
  "engine.cluster.token": "Token for NATS, in place of a user",
  "engine.cluster.credentials": "Path of a NATS credentials file, in place of a user",
  "engine.cluster.tls": "Certificates for NATS",
  "engine.cluster.tls.ca": "PEM file of the authority that issued the certificate of NATS",
  "engine.cluster.tls.cert": "PEM file of the engine's own certificate",
  "engine.cluster.tls.key": "PEM file of its private key",
  "engine.cluster.insecure":
    "Allows addresses that other machines reach without a secret, and one copy of the log",
  "engine.cluster.engine_name": "Name of this engine in lists. Default: that of the machine",
  "engine.cluster.log":
    "Where state, queues and cron are kept: jetstream (default), postgres://…, or none",
  "engine.cluster.keeper": "Whether this engine may keep the state. Default: true",
  "engine.cluster.copies": "Copies of the log on JetStream: 1, 3 (default) or 5",
  "engine.cluster.require_sync":
    "Refuses a log whose answers do not mean that it is on the disk. Default: true",
  "engine.cluster.monitor": "Monitoring addresses of the NATS nodes, such as http://n1:8222",
  "engine.cluster.far_calls":
    "Calls by which workers here may be busier before another engine gets one. Default: 16",
  "log": "The log of the engine",
  "log.level": "Lowest level that is logged. Default: info",
  "log.format": "text, json, or auto (default): text on a terminal",
  "workers": "Built-in workers by name, and directories with an engine.worker.yaml by path",
  "workers[].name": "Name of a built-in worker, or that in the engine.worker.yaml of the path",
  "workers[].path": "Directory of the worker, relative to config.yaml",
  "workers[].isolation": "microvm or process. Default: that of the manifest, else microvm on Linux",
  "workers[].accel": "Accelerator of its microVM: auto (default), kvm, or tcg (emulation)",
  "workers[].replicas": "Number of replicas. Default: as the manifest says, else 1",
  "workers[].required": "The engine is not ready (/readyz) while the worker is not. Default: false",
  "workers[].env": "Environment variables",
  "workers[].config": "Settings of a built-in worker",
  "engine-state.durability":
    "always (default): a write is on disk before its caller gets the result; interval: soon after",
  "engine-state.flush_ms": "With interval: longest time until a write is committed to disk",
  "engine-http.host": "Address. Default: 127.0.0.1",
  "engine-http.port": "Port. Default: 3111",
  "engine-http.timeout_ms": "Time for a whole response. Default: 30000",
  "engine-http.body_bytes_max": "Longest JSON body. Default: 16 MiB",
  "engine-http.buffered_body_bytes_max": "Longest text or form. Default: 1 MiB",
  "engine-http.streamed_body_bytes_max": "Longest body that is read as a stream. Default: 1 GiB",
  "engine-http.concurrency_max": "Requests at the same time. Default: 1024",
  "engine-http.cors": "Which pages of other origins may read responses",
  "engine-http.cors.origins": "Origins besides the same host and this machine; *: all",
  "engine-http.cors.methods": "Methods that such pages may use",
  "engine-http.allowed_hosts":
    "Host names that requests may use, besides localhost and IP addresses",
  "engine-http.middleware": "Functions that are called before every route",
  "engine-http.middleware[].function_id": "Id of the function",
  "engine-http.middleware[].priority": "Middleware with a lower priority runs first. Default: 0",
  "engine-http.websockets_max": "WebSockets at the same time. Default: 10000",
  "engine-http.auth_token": "Bearer token that requests must send; empty: none",
  "engine-http.insecure": "Allows an address that other machines reach without auth_token",
  "engine-http.openapi": "Serves /openapi.json. Default: false",
  "engine-console.host": "Address of the page. Default: 127.0.0.1",
  "engine-console.port": "Port of the page. Default: 3113",
  "engine-console.token":
    "Token that the page asks for; required on an address that other machines reach",
  "engine-console.allowed_hosts":
    "Host names that browsers may use, besides localhost and IP addresses",
  "engine-queue.queues": "Queues by name, with their settings; the queue default always exists",
  "engine-queue.queues{}.type": "standard (default), or fifo: one job of a group at a time",
  "engine-queue.queues{}.message_group_field":
    "Member of the payload that selects the group of a fifo queue",
  "engine-queue.queues{}.max_retries": "Attempts in total, the first included. Default: 3",
  "engine-queue.queues{}.concurrency": "Jobs at the same time. Default: 10",
  "engine-queue.queues{}.concurrency_per_worker":
    "Jobs of one function that each of its workers gets at the same time",
  "engine-queue.queues{}.backoff_ms":
    "Delay before the second attempt; doubles with each further attempt. Default: 1000",
  "engine-queue.queues{}.backoff_max_ms": "Longest delay. Default: 3600000",
  "engine-queue.queues{}.jitter": "Share by which delays vary. Default: 0.1",
  "engine-queue.queues{}.timeout_ms": "How long one attempt may take",
  "engine-queue.queues{}.poll_interval_ms":
    "Delay of a job whose function is overloaded. Default: 100",
  "engine-queue.queues{}.rate": "Limits how many jobs begin within a time",
  "engine-queue.queues{}.rate.jobs": "Number of jobs",
  "engine-queue.queues{}.rate.per_ms": "Length of that time. Default: 1000",
  "engine-queue.queues{}.expires_ms": "A job that has not begun by then becomes a dead letter",
  "engine-pubsub.max_message_bytes": "Longest message",
  "engine-pubsub.max_waiting_calls":
    "Unanswered calls of one subscribed worker; further messages for it are lost",
  "engine-pubsub.max_unsent_bytes":
    "Unsent bytes of one subscribed worker; further messages for it are lost",
  "engine-cron.timezone": "Time zone of triggers that set no timezone. Default: UTC",
  "engine-stream.host": "Address of the port for subscribers. Default: 127.0.0.1",
  "engine-stream.port": "Port for subscribers. Default: 3112",
  "engine-stream.auth_function": "Function that decides about each subscriber",
  "engine-stream.call_timeout_ms": "How long that function may take. Default: 10000",
  "engine-stream.connections_max": "Subscribers at the same time. Default: 10000",
  "engine-stream.allowed_origins": "Origins of pages that may connect, besides this machine's",
  "engine-stream.allowed_hosts":
    "Host names that clients may use, besides localhost and IP addresses",
  "engine-stream.insecure":
    "Allows an address that other machines reach without auth_function. Default: false",
  "engine-configuration.environment":
    "Environment variables that values may refer to; * at the end matches any rest",
  "engine-configuration.secrets_directory": "Directory of files that values may refer to",
  "engine-observability.traces": "Recorded calls",
  "engine-observability.traces.enabled": "Records calls. Default: true",
  "engine-observability.traces.sampling":
    "Share of new traces that is recorded, 0 to 1. Default: 1",
  "engine-observability.traces.rules": "Exceptions for single functions; the first match applies",
  "engine-observability.traces.rules[].operation": "Id of the function, with * for anything",
  "engine-observability.traces.rules[].rate": "Share that is recorded, 0 to 1",
  "engine-observability.traces.memory_mb": "Memory of recorded calls. Default: 32",
  "engine-observability.traces.disk_mb": "Disk space of recorded calls; 0 (default): no files",
  "engine-observability.traces.payload_chars": "Longest recorded payload; 0: none. Default: 2048",
  "engine-observability.logs": "Stored log records",
  "engine-observability.logs.memory_mb": "Memory of log records. Default: 16",
  "engine-observability.logs.disk_mb": "Disk space of log records; 0 (default): no files",
  "engine-observability.logs.level": "Lowest level that is stored. Default: debug",
  "engine-observability.redact":
    "Names or JSON pointers of values that are removed from every record",
  "engine-observability.metrics": "Counters, and rules about them",
  "engine-observability.metrics.prometheus": "Serves /metrics on the worker port. Default: true",
  "engine-observability.metrics.alerts": "Rules that call a function, or mark the console",
  "engine-observability.metrics.alerts[].name": "Name of the rule, unique",
  "engine-observability.metrics.alerts[].metric":
    "Value of the engine that is compared; in place of log",
  "engine-observability.metrics.alerts[].log": "Log records that are counted; in place of metric",
  "engine-observability.metrics.alerts[].log.level": "Records of exactly this level",
  "engine-observability.metrics.alerts[].log.min_level": "Records of this level and above",
  "engine-observability.metrics.alerts[].log.worker": "Name of the worker",
  "engine-observability.metrics.alerts[].log.function_id": "Id of the function that ran",
  "engine-observability.metrics.alerts[].log.text":
    "Text that the record or one of its attributes contains; case is ignored",
  "engine-observability.metrics.alerts[].operator": "How the value is compared. Default: >",
  "engine-observability.metrics.alerts[].threshold":
    "Number that the value is compared with; with log the default is 0",
  "engine-observability.metrics.alerts[].within_s": "Seconds in which log records are counted",
  "engine-observability.metrics.alerts[].for_s":
    "Seconds that the rule has to hold. Default: 10, with log 0",
  "engine-observability.metrics.alerts[].function_id":
    "Function that is called with the alert when it begins to fire and when it ends",
};

/** Keys of engine.worker.yaml. */
export const MANIFEST_TEXTS: ReferenceTexts = {
  "name": "1 to 64 letters, digits, -, _ or ., beginning with a letter or digit",
  "runtime": "What runs the worker",
  "runtime.kind": "Language of the worker",
  "runtime.package_manager": "Default: pip (python), deno (typescript), npm (javascript)",
  "runtime.entry": "File that is run. Default: main, worker or index, here or in src/",
  "scripts": "Commands in place of the usual ones",
  "scripts.install": "Installs the dependencies",
  "scripts.start": "Starts the worker",
  "env": "Environment variables",
  "watch": "Files, folders and globs whose edits restart the worker; ! marks exceptions",
  "isolation": "microvm (default on Linux) or process",
  "network": "full (default), or engine: only the engine can be reached from the microVM",
  "resources": "Processors and memory of the microVM",
  "resources.cpus": "1 to 64. Default: 1",
  "resources.memory_mb": "At least 128; a worker that needs more is killed. Default: 512",
  "reload":
    "start-first (default): a new version starts beside the running one, which ends once the new " +
    "one is ready; stop-first: it starts after the running one has ended, for workers that hold " +
    "a port or a file",
  "restart": "What happens after an unexpected exit",
  "restart.policy": "always (default); on-failure: not after exit code 0; never",
  "restart.max": "After this many exits within within_s the worker is failed. Default: 5",
  "restart.within_s": "Seconds. Default: 60",
  "restart.backoff_ms": "Wait before the first restart; doubles up to 30 s. Default: 1000",
  "replicas": "Number of replicas. Default: 1",
};

/** A value that a variable of the environment fills in. */
const VARIABLE: JsonObject = { type: "string", pattern: "\\$\\{" };

/**
 * A schema whose properties have their texts as descriptions, and may be variables.
 *
 * `seen` is called with the path of every property.
 */
export function describedSchema(
  schema: JsonObject,
  texts: ReferenceTexts,
  seen: (path: string) => void = () => {},
): JsonObject {
  return walk(schema, "", texts, seen) as JsonObject;
}

function walk(
  schema: Json,
  path: string,
  texts: ReferenceTexts,
  seen: (path: string) => void,
): Json {
  if (schema === null || typeof schema !== "object" || Array.isArray(schema)) return schema;
  const { properties, items, additionalProperties, allOf, anyOf, ...rest } = schema;
  const inner: JsonObject = { ...rest };
  if (properties !== undefined) {
    const entries = Object.entries(properties as JsonObject).map(([key, each]): [string, Json] => {
      const at = path === "" ? key : `${path}.${key}`;
      seen(at);
      const described = walk(each, at, texts, seen) as JsonObject;
      return [key, { ...texts[at] !== undefined && { description: texts[at] }, ...described }];
    });
    inner.properties = Object.fromEntries(entries);
  }
  if (items !== undefined) inner.items = walk(items, `${path}[]`, texts, seen);
  if (additionalProperties !== undefined) {
    inner.additionalProperties = walk(additionalProperties, `${path}{}`, texts, seen);
  }
  if (Array.isArray(anyOf)) inner.anyOf = anyOf.map((each) => walk(each, path, texts, seen));
  if (Array.isArray(allOf)) inner.allOf = allOf.map((rule) => walkRule(rule, texts, seen));
  return withVariable(inner);
}

/** The rule for the entry of one built-in worker, whose config has paths of its own. */
function walkRule(rule: Json, texts: ReferenceTexts, seen: (path: string) => void): Json {
  const { if: condition, then } = rule as {
    if: { properties: { name: { const: string } } };
    then: { properties: { config: JsonObject } };
  };
  const { name } = condition.properties;
  const { $schema: _, ...schema } = then.properties.config;
  const config = walk(schema, name.const, texts, seen);
  return { if: condition, then: { properties: { config } } } as unknown as Json;
}

/** Numbers, flags and words may come from a variable; a text may in any case. */
function withVariable(schema: JsonObject): JsonObject {
  const { type, enum: choices, description, ...rest } = schema;
  const isValue = type === "integer" || type === "number" || type === "boolean" ||
    Array.isArray(choices);
  if (!isValue) return schema;
  const value: JsonObject = {
    ...type !== undefined && { type },
    ...choices !== undefined && { enum: choices },
    ...rest,
  };
  return { ...description !== undefined && { description }, anyOf: [value, VARIABLE] };
}
