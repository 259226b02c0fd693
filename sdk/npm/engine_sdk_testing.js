// @ts-self-types="./engine_sdk_testing.d.ts"
// engine-sdk 0.1.0, built by sdk/build_npm.ts; sources sha256:03ba89ddda164c0119f97d0f4cc0196ca415f2e5a48d4b69af61bf913799ac12
// sdk/typescript/wire/errors.ts
var ERRORS = {
  function_not_found: {
    status: 503,
    retryable: false
  },
  invocation_stopped: {
    status: 503,
    retryable: false
  },
  timeout: {
    status: 504,
    retryable: false
  },
  cancelled: {
    status: 500,
    retryable: false
  },
  overloaded: {
    status: 429,
    retryable: true
  },
  bad_message: {
    status: 500,
    retryable: false
  },
  invalid_payload: {
    status: 500,
    retryable: false
  },
  invalid_result: {
    status: 500,
    retryable: false
  },
  invocation_error: {
    status: 500,
    retryable: false
  },
  deserialization_error: {
    status: 500,
    retryable: false
  },
  serialization_error: {
    status: 500,
    retryable: false
  },
  channel_send_failed: {
    status: 500,
    retryable: true
  },
  channel_closed: {
    status: 500,
    retryable: false
  },
  channel_not_found: {
    status: 500,
    retryable: false
  },
  connection_not_found: {
    status: 500,
    retryable: false
  },
  INVALID_NAMESPACE: {
    status: 500,
    retryable: false
  },
  FUNCTION_NAMESPACE_CONFLICT: {
    status: 500,
    retryable: false
  },
  topic_not_set: {
    status: 500,
    retryable: false
  },
  enqueue_error: {
    status: 500,
    retryable: false
  },
  trigger_registration_failed: {
    status: 500,
    retryable: false
  },
  trigger_type_not_found: {
    status: 500,
    retryable: false
  },
  invocation_failed: {
    status: 500,
    retryable: false
  },
  function_not_invokable: {
    status: 500,
    retryable: false
  },
  UNKNOWN: {
    status: 500,
    retryable: false
  },
  TIMEOUT: {
    status: 500,
    retryable: false
  },
  SHUTDOWN: {
    status: 500,
    retryable: false
  },
  http_error: {
    status: 500,
    retryable: false
  },
  http_request_failed: {
    status: 500,
    retryable: false
  },
  invalid_response: {
    status: 500,
    retryable: false
  },
  version_mismatch: {
    status: 500,
    retryable: false
  },
  VALUE_TOO_LARGE: {
    status: 500,
    retryable: false
  },
  GET_ERROR: {
    status: 500,
    retryable: false
  },
  SET_ERROR: {
    status: 500,
    retryable: false
  },
  DELETE_ERROR: {
    status: 500,
    retryable: false
  },
  LIST_ERROR: {
    status: 500,
    retryable: false
  },
  UPDATE_ERROR: {
    status: 500,
    retryable: false
  },
  TRANSACTION_ERROR: {
    status: 500,
    retryable: false
  },
  JSON_ERROR: {
    status: 500,
    retryable: false
  },
  STREAM_SET_ERROR: {
    status: 500,
    retryable: false
  },
  STREAM_GET_ERROR: {
    status: 500,
    retryable: false
  },
  STREAM_DELETE_ERROR: {
    status: 500,
    retryable: false
  },
  STREAM_UPDATE_ERROR: {
    status: 500,
    retryable: false
  },
  STREAM_LIST_ERROR: {
    status: 500,
    retryable: false
  },
  STREAM_LIST_GROUPS_ERROR: {
    status: 500,
    retryable: false
  },
  STREAM_LIST_ALL_ERROR: {
    status: 500,
    retryable: false
  },
  STREAM_SEND_ERROR: {
    status: 500,
    retryable: false
  },
  NOT_REGISTERED: {
    status: 500,
    retryable: false
  },
  INVALID_ID: {
    status: 500,
    retryable: false
  },
  SCHEMA_INVALID: {
    status: 500,
    retryable: false
  },
  SCHEMA_UNAVAILABLE: {
    status: 500,
    retryable: false
  },
  EXPAND_FAILED: {
    status: 500,
    retryable: false
  },
  ADAPTER_ERROR: {
    status: 500,
    retryable: false
  },
  NOT_FOUND: {
    status: 500,
    retryable: false
  },
  FORBIDDEN: {
    status: 500,
    retryable: false
  },
  AUTH_ERROR: {
    status: 500,
    retryable: false
  },
  INVALID_ARGUMENTS: {
    status: 500,
    retryable: false
  },
  store_unavailable: {
    status: 500,
    retryable: false
  },
  invalid_json: {
    status: 400,
    retryable: false
  },
  engine_unreachable: {
    status: 500,
    retryable: true
  },
  body_too_large: {
    status: 413,
    retryable: false
  },
  invalid_body: {
    status: 400,
    retryable: false
  },
  unsupported_media_type: {
    status: 415,
    retryable: false
  },
  unauthorized: {
    status: 401,
    retryable: false
  },
  rate_limited: {
    status: 429,
    retryable: true
  },
  CONDITION_NOT_MET: {
    status: 422,
    retryable: false
  },
  MIDDLEWARE_TIMEOUT: {
    status: 504,
    retryable: false
  },
  config_invalid: {
    status: 500,
    retryable: false
  },
  config_conflict: {
    status: 500,
    retryable: true
  },
  manifest_invalid: {
    status: 500,
    retryable: false
  },
  isolation_unavailable: {
    status: 500,
    retryable: false
  },
  launch_failed: {
    status: 500,
    retryable: false
  },
  too_few_descriptors: {
    status: 500,
    retryable: false
  },
  invalid_grant: {
    status: 500,
    retryable: false
  },
  expired: {
    status: 500,
    retryable: false
  },
  install_failed: {
    status: 500,
    retryable: false
  },
  address_in_use: {
    status: 500,
    retryable: false
  },
  address_not_available: {
    status: 500,
    retryable: false
  },
  invalid_schema: {
    status: 500,
    retryable: false
  }
};
var EngineError = class extends Error {
  /** Identifies the error for programs: a code of the engine, or one of your own. */
  code;
  /** The values to act on. */
  details;
  /** Whether the handler did not start and the same call may succeed later. */
  retryable;
  /**
   * The code may be one of your own, such as `out_of_stock`.
   *
   * @param message One sentence for people.
   */
  constructor(code, message, options = {}) {
    super(message, {
      cause: options.cause
    });
    this.name = "EngineError";
    this.code = code;
    this.details = options.details;
    this.retryable = options.retryable ?? meaningOf(code)?.retryable ?? false;
  }
  /** The error as it is sent: without cause and stack. */
  toJSON() {
    return errorBody(this.code, this.message, this.details, this.retryable);
  }
};
var InvocationError = class extends EngineError {
  /** The function that was called. */
  function_id;
  /** Id of the call; `undefined` if it failed before it was sent. */
  invocation_id;
  /** Stack trace of the handler, if it sent one. */
  stacktrace;
  /** Converts an error as it was received. */
  constructor(body, function_id, invocation_id) {
    const options = {
      retryable: body.retryable ?? false
    };
    if (body.details) options.details = body.details;
    super(body.code, `${body.code}: ${body.message}`, options);
    this.name = "InvocationError";
    this.function_id = function_id;
    this.invocation_id = invocation_id;
    this.stacktrace = body.stacktrace;
  }
};
function meaningOf(code) {
  return Object.hasOwn(ERRORS, code) ? ERRORS[code] : void 0;
}
function errorBody(code, message, details, retryable = meaningOf(code)?.retryable ?? false) {
  const body = {
    code,
    message
  };
  if (details) body.details = details;
  if (retryable) body.retryable = true;
  return body;
}
function normaliseError(error) {
  if (typeof error === "string") return {
    code: "UNKNOWN",
    message: error
  };
  if (error === null || typeof error !== "object" || Array.isArray(error)) {
    return {
      code: "UNKNOWN",
      message: JSON.stringify(error)
    };
  }
  const { code, message, stacktrace, details, retryable } = error;
  const body = {
    code: typeof code === "string" ? code : "UNKNOWN",
    message: typeof message === "string" ? message : JSON.stringify(message ?? error)
  };
  if (typeof stacktrace === "string") body.stacktrace = stacktrace;
  if (details !== null && typeof details === "object" && !Array.isArray(details)) {
    body.details = details;
  }
  if (typeof retryable === "boolean") body.retryable = retryable;
  return body;
}
function describeThrown(thrown) {
  const message = thrownText(thrown);
  try {
    return thrown instanceof Error ? describeError(thrown, message) : {
      code: "invocation_failed",
      message
    };
  } catch {
    return {
      code: "invocation_failed",
      message
    };
  }
}
function thrownText(thrown) {
  try {
    return String(thrown instanceof Error ? thrown.message : thrown);
  } catch {
    return "a value without a text was thrown";
  }
}
function describeError(thrown, message) {
  const { code, details, retryable, stack } = thrown;
  const body = {
    code: typeof code === "string" && code !== "" ? code : "invocation_failed",
    message: thrown instanceof InvocationError ? message.slice(thrown.code.length + 2) : message
  };
  if (typeof stack === "string" && stack !== "") body.stacktrace = stack;
  if (details && typeof details === "object" && !Array.isArray(details)) {
    body.details = details;
  }
  if (retryable === true) body.retryable = true;
  return body;
}

// sdk/testing/clock.ts
var TestClock = class {
  #startMs;
  #timers = /* @__PURE__ */ new Set();
  #nowMs = 0;
  /** A clock that begins at `startMs`, in milliseconds since 1970. */
  constructor(startMs) {
    this.#startMs = startMs;
  }
  /** Milliseconds since the beginning. */
  now() {
    return this.#nowMs;
  }
  /** Milliseconds since 1970. */
  wall() {
    return this.#startMs + this.#nowMs;
  }
  /** Runs `task` once, when so many milliseconds have passed; the result cancels it. */
  after(ms, task) {
    const timer = {
      dueMs: this.#nowMs + Math.max(0, ms),
      task
    };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }
  /** Lets time pass up to the next timer, and runs it; `false` if none is due by `untilMs`. */
  step(untilMs) {
    let next;
    for (const timer of this.#timers) {
      if (timer.dueMs <= untilMs && timer.dueMs < (next?.dueMs ?? Infinity)) next = timer;
    }
    this.#nowMs = Math.max(this.#nowMs, next?.dueMs ?? untilMs);
    if (!next) return false;
    this.#timers.delete(next);
    next.task();
    return true;
  }
};

// sdk/testing/hook.ts
var KEY = Symbol.for("engine-sdk.testing");
function offerConnection(connection) {
  const offered = globalThis[KEY] ??= [];
  offered.push(connection);
  return () => {
    const at = offered.indexOf(connection);
    if (at >= 0) offered.splice(at, 1);
  };
}

// sdk/typescript/wire/protocol.ts
var DEFAULT_NAMESPACE = "default";

// sdk/typescript/wire/similar.ts
var SIMILAR_NAMES_MAX = 3;
var NAMES_COMPARED_MAX = 2e3;
var LENGTH_MAX = 128;
function similarNames(wanted, candidates) {
  if (wanted.length > LENGTH_MAX) return [];
  const farthest = Math.max(2, Math.floor(wanted.length / 3));
  const found = [];
  let looked = 0;
  for (const name of candidates) {
    if (++looked > NAMES_COMPARED_MAX) break;
    const distance = distanceOf(wanted, name, farthest);
    if (distance <= farthest) found.push({
      name,
      distance
    });
  }
  found.sort((a, b) => a.distance - b.distance || (a.name < b.name ? -1 : 1));
  return found.slice(0, SIMILAR_NAMES_MAX).map(({ name }) => name);
}
function distanceOf(a, b, farthest) {
  if (Math.abs(a.length - b.length) > farthest || b.length > LENGTH_MAX) return Infinity;
  const from = a.toLowerCase();
  const to = b.toLowerCase();
  let row = Array.from({
    length: to.length + 1
  }, (_, index) => index);
  for (let i = 1; i <= from.length; i++) {
    const next = [
      i
    ];
    let least = i;
    for (let j = 1; j <= to.length; j++) {
      const changed = row[j - 1] + (from[i - 1] === to[j - 1] ? 0 : 1);
      const value = Math.min(changed, row[j] + 1, next[j - 1] + 1);
      next.push(value);
      if (value < least) least = value;
    }
    if (least > farthest) return Infinity;
    row = next;
  }
  return row[to.length];
}

// sdk/testing/routing.ts
var SILENT = {
  "engine::workers::register": {
    success: true
  }
};
var LOG = /^engine::log::/;
var Routing = class {
  clock;
  seen = [];
  /** Fakes, by namespace and id. */
  fakes = /* @__PURE__ */ new Map();
  builtins = /* @__PURE__ */ new Map();
  types = /* @__PURE__ */ new Map();
  /** Called when a function appears. */
  functionAdded = () => {
  };
  #peers = /* @__PURE__ */ new Set();
  #running = /* @__PURE__ */ new Map();
  /** Calls by the caller's connection and id, to cancel them. */
  #cancels = /* @__PURE__ */ new Map();
  #refused = /* @__PURE__ */ new Set();
  #isOpen = /* @__PURE__ */ new Set();
  #events = 0;
  #turn = 0;
  constructor(clock) {
    this.clock = clock;
  }
  /** Calls that have not ended. */
  get openCalls() {
    return [
      ...this.#isOpen
    ];
  }
  /** Grows with everything that happens. */
  get activity() {
    return this.#events;
  }
  /** Makes a call. @throws {EngineError} What it fails with. */
  call(call) {
    return new Promise((resolve, reject) => {
      this.#start(call, "test", (result, error) => {
        if (!error) return resolve(result);
        const { code, message, details, retryable = false } = error;
        reject(new EngineError(code, message, {
          ...details && {
            details
          },
          retryable
        }));
      });
    });
  }
  /** Makes a call whose outcome nothing waits for; it is kept among the seen ones. */
  fire(call) {
    this.#start(call, "test", () => {
    });
  }
  /** The triggers of a type, in the order of their registration. */
  triggers(type) {
    return [
      ...this.#peers
    ].flatMap((peer) => [
      ...peer.triggers.values()
    ]).filter(({ id, trigger_type }) => trigger_type === type && !this.#refused.has(id));
  }
  /** Whether a function is there. */
  has(function_id, namespace) {
    const key = keyOf(namespace, function_id);
    return this.fakes.has(key) || this.builtins.has(function_id) || this.#replicas(key).length > 0;
  }
  /** Ends all calls and conversations. */
  stop() {
    for (const [id, { end }] of this.#running) {
      this.#running.delete(id);
      end(void 0, errorBody("invocation_stopped", "The test engine has stopped"));
    }
    for (const peer of this.#peers) peer.abandon();
  }
  joined(peer) {
    this.#peers.add(peer);
    const capabilities = [
      "cancel",
      "timeout",
      "progress"
    ];
    const reattach_token = crypto.randomUUID();
    peer.send({
      type: "workerregistered",
      worker_id: peer.id,
      reattach_token,
      capabilities
    });
  }
  left(peer) {
    this.#peers.delete(peer);
    for (const trigger of peer.triggers.values()) this.#removeTrigger(trigger);
    for (const [id, { callee, end }] of this.#running) {
      if (callee !== peer) continue;
      this.#running.delete(id);
      end(void 0, errorBody("invocation_stopped", "Invocation stopped"));
    }
  }
  received(peer, message) {
    this.#events++;
    switch (message.type) {
      case "registerfunction":
        peer.functions.set(keyOf(message.namespace, message.id), message);
        return this.functionAdded();
      case "unregisterfunction":
        return void peer.functions.delete(keyOf(message.namespace, message.id));
      case "registertrigger":
        return this.#addTrigger(peer, message);
      case "unregistertrigger": {
        const trigger = peer.triggers.get(message.id);
        peer.triggers.delete(message.id);
        return trigger && this.#removeTrigger(trigger);
      }
      case "registertriggertype":
        peer.types.add(message.id);
        for (const trigger of this.triggers(message.id)) peer.send(trigger);
        return;
      case "unregistertriggertype":
        return void peer.types.delete(message.id);
      case "triggerregistrationresult":
        return message.error && this.#refuse(message.id, message.error);
      case "invokefunction":
        return this.#invoke(peer, message);
      case "invocationresult":
        return this.#finish(message.invocation_id, message.result, message.error);
      case "invocationprogress":
        return this.#running.get(message.invocation_id)?.progress?.(message.data);
      case "cancelinvocation":
        return this.#cancels.get(`${peer.id} ${message.invocation_id}`)?.(message.reason ?? "");
      case "ping":
        return peer.send({
          type: "pong"
        });
      default:
        return;
    }
  }
  #finish(id, result, error) {
    const running = this.#running.get(id);
    this.#running.delete(id);
    running?.end(error ? void 0 : result ?? void 0, error);
  }
  #invoke(peer, message) {
    const { function_id, invocation_id, data, metadata, namespace, timeout_ms, action } = message;
    if (function_id === "engine::workers::register") peer.name = String(data.name);
    const answer = (result, error) => {
      this.#cancels.delete(`${peer.id} ${invocation_id}`);
      if (invocation_id === void 0 || action?.type === "void") return;
      const head = {
        type: "invocationresult",
        invocation_id,
        function_id
      };
      if (error) peer.send({
        ...head,
        error
      });
      else peer.send({
        ...head,
        ...result !== void 0 && result !== null && {
          result
        }
      });
    };
    const call = {
      function_id,
      payload: data,
      metadata,
      namespace,
      timeout_ms
    };
    if (LOG.test(function_id) || Object.hasOwn(SILENT, function_id)) {
      return answer(SILENT[function_id], void 0);
    }
    if (action?.type === "enqueue") {
      const job = {
        ...action,
        function_id,
        data: data ?? null,
        namespace: namespace ?? null
      };
      const enqueue = this.builtins.get("engine::queue::enqueue");
      return void settled(() => enqueue(job, void 0), answer);
    }
    const cancel = this.#start(call, peer.name, answer, (data2) => {
      if (invocation_id) peer.send({
        type: "invocationprogress",
        invocation_id,
        data: data2
      });
    });
    if (invocation_id) this.#cancels.set(`${peer.id} ${invocation_id}`, cancel);
  }
  /** Starts a call; the result cancels it. */
  #start(call, caller, outcome, progress) {
    const { function_id, metadata, timeout_ms } = call;
    const payload = call.payload === void 0 ? null : jsonCopy(call.payload);
    const record = {
      ...{
        function_id,
        payload,
        metadata,
        caller
      },
      ...{
        result: void 0,
        error: void 0
      }
    };
    this.seen.push(record);
    this.#isOpen.add(record);
    let stopTimer = () => {
    };
    const end = (result, error) => {
      if (!this.#isOpen.delete(record)) return;
      this.#events++;
      stopTimer();
      Object.assign(record, {
        result,
        error
      });
      outcome(result, error);
    };
    const stop = this.#dispatch(call, payload, end, progress);
    if (timeout_ms !== void 0) {
      stopTimer = this.clock.after(timeout_ms, () => {
        end(void 0, errorBody("timeout", `Invocation of ${function_id} timed out after ${timeout_ms} ms`));
        stop("timeout");
      });
    }
    return (reason) => {
      end(void 0, errorBody("cancelled", "Invocation cancelled"));
      stop(reason);
    };
  }
  /** Runs a function; the result tells its worker that the caller is gone. */
  #dispatch({ function_id, metadata, namespace, timeout_ms }, payload, end, progress) {
    const key = keyOf(namespace, function_id);
    const own = this.fakes.get(key) ?? this.builtins.get(function_id);
    const replicas = this.#replicas(key);
    if (own) void settled(() => own(jsonCopy(payload), metadata), end);
    if (own || replicas.length === 0) {
      if (!own) queueMicrotask(() => end(void 0, this.#notFound(function_id)));
      return () => {
      };
    }
    const callee = replicas[this.#turn++ % replicas.length];
    const invocation_id = crypto.randomUUID();
    this.#running.set(invocation_id, {
      callee,
      end,
      progress
    });
    callee.send({
      ...{
        type: "invokefunction",
        invocation_id,
        function_id
      },
      ...namespace !== void 0 && {
        namespace
      },
      ...timeout_ms !== void 0 && {
        timeout_ms
      },
      ...metadata !== void 0 && {
        metadata
      },
      data: payload
    });
    return (reason) => {
      if (!this.#running.delete(invocation_id)) return;
      callee.send({
        type: "cancelinvocation",
        invocation_id,
        reason
      });
    };
  }
  #notFound(function_id) {
    const ids = [
      ...this.#peers
    ].flatMap((peer) => [
      ...peer.functions.values()
    ].map(({ id }) => id));
    const [similar] = similarNames(function_id, [
      ...ids,
      ...this.builtins.keys()
    ]);
    const hint = `; to fake it: engine.fake("${function_id}", \u2026)`;
    const details = {
      ...similar !== void 0 && {
        similar
      },
      hint: hint.slice(2)
    };
    return errorBody("function_not_found", `Function ${function_id} not found`, details);
  }
  #replicas(key) {
    return [
      ...this.#peers
    ].filter((peer) => peer.functions.has(key));
  }
  #addTrigger(peer, trigger) {
    const own = this.types.get(trigger.trigger_type);
    if (peer.triggers.has(trigger.id)) own?.removed?.(trigger.id);
    this.#refused.delete(trigger.id);
    peer.triggers.set(trigger.id, trigger);
    try {
      own?.added?.(trigger);
    } catch (thrown) {
      const { message } = describeThrown(thrown);
      return this.#refuse(trigger.id, errorBody("trigger_registration_failed", message));
    }
    for (const provider of this.#providers(trigger.trigger_type)) provider.send(trigger);
  }
  #refuse(id, error) {
    const originator = [
      ...this.#peers
    ].find((peer) => peer.triggers.has(id));
    const trigger = originator?.triggers.get(id);
    if (!originator || !trigger) return;
    this.#refused.add(id);
    const { trigger_type, function_id } = trigger;
    originator.send({
      type: "triggerregistrationresult",
      id,
      trigger_type,
      function_id,
      error
    });
  }
  #removeTrigger({ id, trigger_type }) {
    this.types.get(trigger_type)?.removed?.(id);
    for (const provider of this.#providers(trigger_type)) {
      provider.send({
        type: "unregistertrigger",
        id,
        trigger_type
      });
    }
  }
  #providers(type) {
    return [
      ...this.#peers
    ].filter((peer) => peer.types.has(type));
  }
};
async function settled(run, end) {
  try {
    const value = await run();
    end(value === void 0 || value === null ? void 0 : jsonCopy(value), void 0);
  } catch (thrown) {
    end(void 0, describeThrown(thrown));
  }
}
function jsonCopy(value) {
  return JSON.parse(JSON.stringify(value) ?? "null");
}
function keyOf(namespace, id) {
  return `${namespace ?? DEFAULT_NAMESPACE}\0${id}`;
}

// sdk/testing/http.ts
async function sendRequest(routing, method, target, options) {
  const url = new URL(target, "http://localhost");
  const match = findRoute(routing, method.toUpperCase(), url.pathname);
  if (!match) return failure(404, new EngineError("NOT_FOUND", "Not Found"));
  const payload = payloadOf(match, method.toUpperCase(), url, options);
  const { trigger } = match;
  const { condition_function_id, enqueue } = trigger.config ?? {};
  const { metadata, namespace } = trigger;
  try {
    if (typeof condition_function_id === "string") {
      const call = {
        function_id: condition_function_id,
        payload,
        namespace
      };
      if (await routing.call(call) === false) {
        return failure(422, new EngineError("CONDITION_NOT_MET", "Request condition not met"));
      }
    }
    if (typeof enqueue === "string") {
      const job = {
        queue: enqueue,
        function_id: trigger.function_id,
        data: payload
      };
      const receipt = await routing.call({
        function_id: "engine::queue::enqueue",
        payload: job
      });
      return jsonResponse(202, receipt);
    }
    const { function_id } = trigger;
    return responseOf(await routing.call({
      function_id,
      payload,
      metadata,
      namespace
    }));
  } catch (thrown) {
    const error = thrown;
    return failure(meaningOf(error.code)?.status ?? 500, error);
  }
}
function findRoute(routing, method, path) {
  const fitting = routing.triggers("http").flatMap((trigger) => {
    const { api_path, http_method = "GET" } = trigger.config ?? {};
    const wanted = String(http_method).toUpperCase();
    if (wanted !== method && !(method === "HEAD" && wanted === "GET")) return [];
    const match = fit(String(api_path), path);
    return match ? [
      {
        trigger,
        path: String(api_path),
        ...match
      }
    ] : [];
  });
  return fitting.toSorted((a, b) => a.rank < b.rank ? -1 : a.rank > b.rank ? 1 : 0).findLast((match, _i, all) => match.rank === all[0].rank);
}
function fit(route, path) {
  const wanted = route.replace(/^\//, "").split("/");
  const parts = path.replace(/^\//, "").split("/");
  const params = {};
  let rank = "";
  for (const [i, segment] of wanted.entries()) {
    if (segment === "*" && i === wanted.length - 1 && parts.length > i) {
      params["*"] = parts.slice(i).map(decode).join("/");
      return {
        params,
        rank: `${rank}2`
      };
    }
    const part = parts[i];
    if (part === void 0) return void 0;
    const isParam = segment.startsWith(":");
    if (isParam && part === "") return void 0;
    if (isParam) params[segment.slice(1)] = decode(part);
    else if (segment !== part) return void 0;
    rank += isParam ? "1" : "0";
  }
  return parts.length === wanted.length ? {
    params,
    rank
  } : void 0;
}
function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
function payloadOf({ path, params }, method, url, { body, headers = {} }) {
  const isText = typeof body === "string";
  const given = Object.entries(headers).map(([name, value]) => [
    name.toLowerCase(),
    value
  ]);
  const type = body === void 0 ? {} : {
    "content-type": isText ? "text/plain" : "application/json"
  };
  const all = {
    host: "localhost",
    ...type,
    ...Object.fromEntries(given)
  };
  const isJson = /^application\/([\w.-]+\+)?json\b/.test(all["content-type"] ?? "");
  const read2 = body === void 0 ? null : isText && isJson ? JSON.parse(body) : jsonCopy(body);
  const repeated = new Set([
    ...url.searchParams.keys()
  ].filter((key, i, keys) => {
    return keys.indexOf(key) !== i;
  }));
  const lists = [
    ...url.searchParams.keys()
  ].map((key) => [
    key,
    url.searchParams.getAll(key)
  ]);
  return {
    ...{
      path,
      method,
      path_params: params,
      headers: all,
      body: read2
    },
    query_params: Object.fromEntries(url.searchParams),
    query_string: url.search.slice(1),
    ...repeated.size > 0 && {
      query_params_all: Object.fromEntries(lists)
    },
    trigger: {
      type: "http",
      path,
      method
    }
  };
}
var PARTS = [
  "status_code",
  "statusCode",
  "headers",
  "body",
  "body_base64"
];
function responseOf(value) {
  if (value === void 0 || value === null) return jsonResponse(200, {});
  const isParts = typeof value === "object" && !Array.isArray(value) && PARTS.some((name) => Object.hasOwn(value, name));
  if (!isParts) {
    if (typeof value !== "string") return jsonResponse(200, value);
    return {
      status: 200,
      headers: {
        "content-type": "text/plain"
      },
      body: value
    };
  }
  const { headers: given = {}, body_base64, ...rest } = value;
  const wanted = Number(rest.status_code ?? rest.statusCode ?? 200);
  const status = wanted >= 100 && wanted <= 599 ? wanted : 200;
  const headers = headersOf(given);
  if (typeof body_base64 === "string") {
    const bytes = Uint8Array.from(atob(body_base64), (letter) => letter.charCodeAt(0));
    return {
      status,
      headers: {
        "content-type": "application/octet-stream",
        ...headers
      },
      body: bytes
    };
  }
  const type = headers["content-type"];
  if (type === void 0) {
    return jsonResponse(status, Object.hasOwn(rest, "body") ? rest.body : {}, headers);
  }
  const isJson = /json/.test(type);
  if (typeof rest.body !== "string" || !isJson) return {
    status,
    headers,
    body: rest.body ?? ""
  };
  return {
    status,
    headers,
    body: JSON.parse(rest.body)
  };
}
function headersOf(given) {
  const pairs = Array.isArray(given) ? given.map((line) => {
    const [, name = "", value = ""] = /^([^:]*):\s*(.*)$/.exec(String(line)) ?? [];
    return [
      name,
      value
    ];
  }) : Object.entries(given);
  return Object.fromEntries(pairs.map(([name, value]) => [
    name.toLowerCase(),
    [
      value
    ].flat().map(String).join(", ")
  ]));
}
function jsonResponse(status, body, headers = {}) {
  return {
    status,
    headers: {
      "content-type": "application/json",
      ...headers
    },
    body
  };
}
function failure(status, { code, message, details }) {
  return jsonResponse(status, {
    error: {
      code,
      message,
      ...details && {
        details
      }
    }
  });
}

// sdk/typescript/wire/limits.ts
var WORKER_PORT = 49134;
var ENGINE_URL_DEFAULT = `ws://127.0.0.1:${WORKER_PORT}`;
var TIMEOUT_MS_MAX = 6048e5;
var ID_CHARS_MAX = 1024;
var BATCH_CHARS_MAX = 64 * 1024;

// sdk/typescript/wire/codec.ts
var NAMED = {
  trigger_type: "id",
  function_id: "id"
};
var FIELDS = {
  registerfunction: {
    id: "id",
    namespace: "namespace?",
    description: "string?",
    request_format: "json?",
    response_format: "json?",
    metadata: "json?",
    invocation: "object?"
  },
  unregisterfunction: {
    id: "id",
    namespace: "namespace?"
  },
  registertriggertype: {
    id: "id",
    description: "string",
    namespace: "namespace?",
    trigger_request_format: "json?",
    call_request_format: "json?"
  },
  unregistertriggertype: {
    id: "id",
    namespace: "namespace?"
  },
  registertrigger: {
    id: "id",
    ...NAMED,
    namespace: "namespace?",
    trigger_namespace: "namespace?",
    metadata: "json?",
    config: "json?"
  },
  triggerregistrationresult: {
    id: "id",
    ...NAMED,
    error: "error?"
  },
  unregistertrigger: {
    id: "id",
    trigger_type: "id?"
  },
  invokefunction: {
    invocation_id: "id?",
    function_id: "id",
    namespace: "namespace?",
    action: "action?",
    timeout_ms: "timeout?",
    metadata: "json?",
    traceparent: "string?",
    baggage: "string?",
    caller: "string?",
    data: "json?"
  },
  invocationresult: {
    invocation_id: "id",
    function_id: "id",
    traceparent: "string?",
    baggage: "string?",
    error: "error?",
    result: "json?"
  },
  invocationprogress: {
    invocation_id: "id",
    data: "json!"
  },
  cancelinvocation: {
    invocation_id: "id",
    reason: "string?"
  },
  reattach: {
    previous_worker_id: "string",
    reattach_token: "string"
  },
  workerregistered: {
    worker_id: "string",
    reattach_token: "string",
    capabilities: "strings"
  },
  registrationrejected: {
    code: "string",
    namespace: "string",
    function_id: "string?",
    worker_name: "string?",
    owner_worker_id: "string?",
    message: "string?"
  },
  error: {
    error: "error"
  },
  ping: {},
  pong: {},
  registerservice: {
    id: "id"
  }
};
var FROM_WORKER = /* @__PURE__ */ new Set([
  "cancelinvocation",
  "invocationprogress",
  "invocationresult",
  "invokefunction",
  "ping",
  "pong",
  "reattach",
  "registerfunction",
  "registerservice",
  "registertrigger",
  "registertriggertype",
  "triggerregistrationresult",
  "unregisterfunction",
  "unregistertrigger",
  "unregistertriggertype"
]);
function decodeWorkerMessage(text) {
  return readWorkerMessage(parseMessage(text));
}
function parseMessage(text) {
  let value;
  try {
    value = JSON.parse(text);
  } catch (thrown) {
    throw bad(`message: expected JSON: ${thrown.message}`);
  }
  if (!isObject(value)) throw unexpected("message", "an object", value);
  return value;
}
function readWorkerMessage(message) {
  return read(message, FROM_WORKER);
}
function encodeMessage(message) {
  const fields = message;
  const ordered = {
    type: message.type
  };
  for (const name in FIELDS[message.type]) {
    if (fields[name] !== void 0) ordered[name] = fields[name];
  }
  try {
    return JSON.stringify(ordered);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message.split("\n", 1)[0] : String(cause);
    throw new EngineError("serialization_error", `${message.type}: not JSON: ${reason}`, {
      cause
    });
  }
}
function read(message, known) {
  const { type } = message;
  if (typeof type !== "string") throw unexpected("type", "a string", type);
  if (!known.has(type)) throw unexpected("type", "a known type of message", type);
  if (isPlain(message, type)) return message;
  const kinds = FIELDS[type];
  const result = {
    type
  };
  for (const name in kinds) {
    const kind = kinds[name];
    const value = Object.hasOwn(message, name) ? message[name] : void 0;
    if (kind === "json!") {
      if (value === void 0) throw unexpected(`${type}.${name}`, "any JSON", value);
      result[name] = value;
    } else if (value !== void 0 && value !== null) {
      const plain = kind.endsWith("?") ? kind.slice(0, -1) : kind;
      result[name] = readField(plain, value, type, name);
    } else if (!kind.endsWith("?")) {
      throw unexpected(`${type}.${name}`, EXPECTED[kind], value);
    }
  }
  return result;
}
function isPlain(message, type) {
  const fields = PLAIN.get(type);
  if (!fields) return false;
  let missing = fields.required;
  for (const name in message) {
    const kind = fields.kinds.get(name);
    const value = message[name];
    switch (kind) {
      case "id":
        missing--;
        if (typeof value !== "string" || value.length > ID_CHARS_MAX) return false;
        break;
      case "id?":
        if (typeof value !== "string" || value.length > ID_CHARS_MAX) return false;
        break;
      case "string?":
        if (typeof value !== "string") return false;
        break;
      case "timeout?":
        if (!isTimeout(value)) return false;
        break;
      case "json?":
        if (value === null) return false;
        break;
      default:
        if (name !== "type") return false;
    }
  }
  return missing === 0;
}
var PLAIN = new Map([
  "invokefunction",
  "invocationresult",
  "registerfunction",
  "registertrigger"
].map((type) => {
  const fields = Object.entries(FIELDS[type]);
  const required = fields.filter(([, kind]) => !kind.endsWith("?")).length;
  return [
    type,
    {
      kinds: new Map(fields),
      required
    }
  ];
}));
var EXPECTED = {
  action: "an object",
  error: "an error object",
  id: "a string",
  json: "any JSON",
  namespace: "a namespace",
  object: "an object",
  string: "a string",
  strings: "an array of strings",
  timeout: `an integer from 1 to ${TIMEOUT_MS_MAX}`
};
function readField(kind, value, type, name) {
  switch (kind) {
    case "json":
      return value;
    case "error":
      return normaliseError(value);
    case "action":
      return readAction(value, `${type}.${name}`);
    case "namespace":
      if (typeof value === "string" && value !== "" && value.length <= ID_CHARS_MAX) return value;
      if (typeof value === "string" && value !== "") {
        const most = `expected at most ${ID_CHARS_MAX} characters, received ${value.length}`;
        throw new EngineError("INVALID_NAMESPACE", `${type}.${name}: ${most}`);
      }
      throw new EngineError("INVALID_NAMESPACE", `${type}.${name}: expected a string that is not empty, received ${quoted(value)}`);
    case "id":
      if (typeof value === "string" && value.length <= ID_CHARS_MAX) return value;
      if (typeof value !== "string") break;
      throw unexpected(`${type}.${name}`, `at most ${ID_CHARS_MAX} characters`, value.length);
    case "string":
      if (typeof value === "string") return value;
      break;
    case "object":
      if (isObject(value)) return value;
      break;
    case "strings":
      if (Array.isArray(value) && value.every((item) => typeof item === "string")) return value;
      break;
    case "timeout":
      if (isTimeout(value)) return value;
  }
  throw unexpected(`${type}.${name}`, EXPECTED[kind], value);
}
function isTimeout(value) {
  return Number.isInteger(value) && value >= 1 && value <= TIMEOUT_MS_MAX;
}
function readAction(value, path) {
  if (!isObject(value)) throw unexpected(path, EXPECTED.action, value);
  const { type, queue } = value;
  if (type === "void") return {
    type
  };
  if (type !== "enqueue") throw unexpected(`${path}.type`, `"void" or "enqueue"`, type);
  if (typeof queue !== "string") throw unexpected(`${path}.queue`, "a string", queue);
  const action = {
    type,
    queue
  };
  for (const name of ENQUEUE_OPTIONS) {
    const option = value[name];
    if (option !== void 0 && option !== null) action[name] = option;
  }
  return action;
}
var ENQUEUE_OPTIONS = [
  "id",
  "delay_ms",
  "run_at_ms",
  "priority",
  "expires_ms",
  "timeout_ms",
  "keep_result_ms"
];
function isObject(value) {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}
function unexpected(path, expected, received) {
  return bad(`${path}: expected ${expected}, received ${quoted(received)}`);
}
function bad(message) {
  return new EngineError("bad_message", message);
}
function quoted(value) {
  if (value === void 0) return "nothing";
  if (Array.isArray(value)) return "an array";
  if (isObject(value)) return "an object";
  const text = JSON.stringify(typeof value === "string" ? value.slice(0, 60) : value);
  return typeof value === "string" && value.length > 60 ? `${text}\u2026` : text;
}

// sdk/testing/peers.ts
var Peer = class {
  /** As it announced itself. */
  name = "worker";
  id = crypto.randomUUID();
  functions = /* @__PURE__ */ new Map();
  triggers = /* @__PURE__ */ new Map();
  types = /* @__PURE__ */ new Set();
  #events;
  #isOpen = true;
  #isDeaf = false;
  constructor(events) {
    this.#events = events;
  }
  get isOpen() {
    return this.#isOpen;
  }
  send(message) {
    const text = encodeMessage(message);
    queueMicrotask(() => {
      if (this.#isOpen && !this.#isDeaf) this.#events.text(text);
    });
  }
  /**
   * Ends the conversation, but not the connection: a worker whose connection was lost would say so
   * and dial again.
   */
  abandon() {
    queueMicrotask(() => this.#isDeaf = true);
  }
  close(code, reason) {
    if (!this.#isOpen) return;
    queueMicrotask(() => {
      if (!this.#isOpen) return;
      this.#isOpen = false;
      this.#events.closed(code, reason);
    });
  }
};
function dialTo(engine) {
  return (_url, events) => {
    const peer = new Peer({
      ...events,
      text: (text) => events.text(text),
      closed(code, reason) {
        engine.left(peer);
        events.closed(code, reason);
      }
    });
    queueMicrotask(() => {
      events.opened();
      engine.joined(peer);
    });
    return {
      send(message) {
        if (typeof message !== "string" || !peer.isOpen) return;
        const decoded = decodeWorkerMessage(message);
        queueMicrotask(() => engine.received(peer, decoded));
      },
      close: (code = 1e3, reason = "") => peer.close(code, reason)
    };
  };
}

// sdk/testing/queues.ts
var DEFAULTS = {
  max_retries: 3,
  backoff_ms: 1e3,
  backoff_max_ms: 36e5,
  type: "standard",
  message_group_field: null
};
var Queues = class {
  /** All jobs, also those that are done. */
  jobs = [];
  #routing;
  #settings = /* @__PURE__ */ new Map();
  /** @param names Queues of the configuration that the test stands for. */
  constructor(routing, names) {
    this.#routing = routing;
    for (const name of [
      "default",
      ...names
    ]) this.#settings.set(name, DEFAULTS);
    routing.types.set("queue", {
      added: ({ function_id, config }) => {
        const { name = function_id, ...settings } = config ?? {};
        this.#settings.set(String(name), {
          ...DEFAULTS,
          ...settings
        });
      }
    });
    routing.builtins.set("engine::queue::enqueue", (job) => this.#add(job));
    routing.functionAdded = () => {
      for (const job of this.jobs) if (job.state === "waiting") this.#begin(job);
    };
  }
  #add(given) {
    const { queue, function_id, data = null, id, delay_ms, run_at_ms } = given;
    const settings = this.#settings.get(String(queue));
    if (!settings) throw new EngineError("enqueue_error", `Queue '${queue}' not found`);
    if (id !== void 0 && this.jobs.some((job2) => job2.id === id)) {
      return {
        messageReceiptId: id,
        duplicate: true
      };
    }
    const wall = this.#routing.clock.wall();
    const delayMs = Number(delay_ms ?? (run_at_ms === void 0 ? 0 : Number(run_at_ms) - wall));
    const job = {
      ...{
        id: String(id ?? crypto.randomUUID()),
        queue: String(queue),
        payload: data
      },
      ...{
        function_id: String(function_id),
        state: "delayed",
        attempts: 0,
        error: void 0
      },
      namespace: typeof given.namespace === "string" ? given.namespace : void 0,
      timeout_ms: given.timeout_ms === void 0 ? void 0 : Number(given.timeout_ms),
      group: groupOf(settings, data)
    };
    this.jobs.push(job);
    this.#beginAfter(job, delayMs);
    return {
      messageReceiptId: job.id
    };
  }
  #beginAfter(job, ms) {
    if (ms > 0) this.#routing.clock.after(ms, () => this.#begin(job));
    else queueMicrotask(() => this.#begin(job));
  }
  #begin(job) {
    if (!this.jobs.includes(job)) return;
    const { queue, function_id, namespace, payload, timeout_ms, group } = job;
    const isHeld = group !== void 0 && this.jobs.find((other) => other.queue === queue && other.group === group && isOpen(other)) !== job;
    job.state = "waiting";
    if (isHeld || !this.#routing.has(function_id, namespace)) return;
    job.state = "running";
    job.attempts++;
    this.#routing.call({
      function_id,
      namespace,
      payload,
      timeout_ms
    }).then(() => this.#end(job, "done"), (error) => this.#failed(job, error));
  }
  #failed(job, error) {
    job.error = error.toJSON();
    const { max_retries, backoff_ms, backoff_max_ms } = this.#settings.get(job.queue);
    if (job.attempts >= max_retries) return this.#end(job, "dead");
    job.state = "delayed";
    const delay = Math.min(backoff_ms * 2 ** (job.attempts - 1), backoff_max_ms);
    this.#beginAfter(job, error.code === "invocation_stopped" ? 0 : delay);
  }
  #end(job, state) {
    job.state = state;
    const next = this.jobs.find((other) => other.queue === job.queue && other.group === job.group && other.state === "waiting");
    if (next && job.group !== void 0) this.#begin(next);
  }
};
function isOpen({ state }) {
  return state !== "done" && state !== "dead";
}
function groupOf({ type, message_group_field }, data) {
  if (type !== "fifo") return void 0;
  const value = data?.[String(message_group_field)];
  if (typeof value === "string" || typeof value === "number") return String(value);
  throw new EngineError("enqueue_error", `A job needs ${message_group_field} as its group`);
}

// sdk/testing/cron.ts
var MONTHS = "JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC".split(" ");
var WEEKDAYS = "SUN MON TUE WED THU FRI SAT".split(" ");
var MINUTE_MS = 6e4;
var DAY_MS = 1440 * MINUTE_MS;
var DAYS_MAX = 366 * 8 + 2;
function parseCron(expression) {
  const fields = expression.trim().split(/\s+/);
  if (fields.length !== 6 && fields.length !== 7) {
    throw new Error(`Cron expression ${JSON.stringify(expression)} needs 6 fields, seconds first`);
  }
  const [seconds, minutes, hours, days, months, weekdays] = fields;
  return {
    seconds: valuesOf(seconds, 0, 59),
    minutes: valuesOf(minutes, 0, 59),
    hours: valuesOf(hours, 0, 23),
    days: valuesOf(days, 1, 31),
    months: valuesOf(months, 1, 12, MONTHS),
    weekdays: new Set([
      ...valuesOf(weekdays, 0, 7, WEEKDAYS)
    ].map((day) => day % 7)),
    isEitherDay: !isAny(days) && !isAny(weekdays)
  };
}
function nextTime(schedule, afterMs) {
  const start = Math.floor(afterMs / 1e3) * 1e3 + 1e3;
  const firstDay = Math.floor(start / DAY_MS) * DAY_MS;
  for (let day = 0; day < DAYS_MAX; day++) {
    const midnight = firstDay + day * DAY_MS;
    if (!isOnDay(schedule, new Date(midnight))) continue;
    for (let minute = 0; minute < 1440; minute++) {
      const isWanted = schedule.hours.has(Math.floor(minute / 60)) && schedule.minutes.has(minute % 60);
      if (!isWanted) continue;
      for (const second of schedule.seconds) {
        const time = midnight + minute * MINUTE_MS + second * 1e3;
        if (time >= start) return time;
      }
    }
  }
  return void 0;
}
function isOnDay({ months, days, weekdays, isEitherDay }, date) {
  if (!months.has(date.getUTCMonth() + 1)) return false;
  const [isDay, isWeekday] = [
    days.has(date.getUTCDate()),
    weekdays.has(date.getUTCDay())
  ];
  return isEitherDay ? isDay || isWeekday : isDay && isWeekday;
}
function isAny(field) {
  return field === "*" || field === "?";
}
function valuesOf(field, least, most, names = []) {
  const numberOf = (text) => {
    const at = names.indexOf(text.toUpperCase());
    const value = at >= 0 ? at + (names === MONTHS ? 1 : 0) : Number(text);
    if (text !== "" && Number.isInteger(value) && value >= least && value <= most) return value;
    throw new Error(`Cron field ${JSON.stringify(field)}: ${JSON.stringify(text)} is not a value of it`);
  };
  const found = /* @__PURE__ */ new Set();
  for (const part of field.split(",")) {
    const [range = "", step = "1"] = part.split("/");
    const [from = "", to] = isAny(range) ? [
      `${least}`,
      `${most}`
    ] : range.split("-");
    const first = numberOf(from);
    const last = to !== void 0 ? numberOf(to) : part.includes("/") ? most : first;
    const by = Number(step);
    if (!Number.isInteger(by) || by < 1) {
      throw new Error(`Cron field ${field}: ${step} is not a step`);
    }
    for (let value = first; value <= last; value += by) found.add(value);
  }
  return new Set([
    ...found
  ].sort((a, b) => a - b));
}

// sdk/testing/triggers.ts
async function passes(routing, { config, namespace }, payload) {
  const id = config?.condition_function_id;
  if (typeof id !== "string") return true;
  try {
    return await routing.call({
      function_id: id,
      payload,
      namespace
    }) !== false;
  } catch {
    return false;
  }
}
function addTopics(routing) {
  routing.types.set("subscribe", {
    added: ({ config }) => void topicOf(config ?? null)
  });
  routing.builtins.set("publish", (payload) => {
    const topic = topicOf(payload);
    const { data = null } = payload;
    for (const trigger of routing.triggers("subscribe")) {
      if (!matches(topicOf(trigger.config), topic)) continue;
      void passes(routing, trigger, data).then((isPassed) => {
        if (isPassed) routing.fire({
          ...trigger,
          payload: data
        });
      });
    }
  });
}
function topicOf(from) {
  const topic = from?.topic;
  if (typeof topic === "string" && topic !== "") return topic;
  throw new EngineError("topic_not_set", "topic must be a string");
}
function matches(pattern, topic) {
  const [wanted, parts] = [
    pattern.split("."),
    topic.split(".")
  ];
  const isOpen2 = wanted.at(-1) === ">";
  if (isOpen2 ? parts.length < wanted.length : parts.length !== wanted.length) return false;
  return wanted.every((part, i) => part === "*" || part === ">" || part === parts[i]);
}
function addSchedules(routing) {
  const stops = /* @__PURE__ */ new Map();
  routing.types.set("cron", {
    added(trigger) {
      const { expression, timezone = "UTC" } = trigger.config ?? {};
      if (typeof expression !== "string" || expression === "") {
        throw new Error("Cron expression is required");
      }
      if (timezone !== "UTC") throw new Error("A test engine has the time zone UTC only");
      const schedule = parseCron(expression);
      const { clock } = routing;
      const wait = () => {
        const next = nextTime(schedule, clock.wall());
        if (next === void 0) return;
        stops.set(trigger.id, clock.after(next - clock.wall(), () => {
          wait();
          void fire(routing, trigger, next);
        }));
      };
      wait();
    },
    removed: (id) => stops.get(id)?.()
  });
}
async function fire(routing, trigger, at) {
  const scheduled_time = timeText(at);
  const actual_time = timeText(routing.clock.wall());
  const payload = {
    trigger: "cron",
    job_id: trigger.id,
    scheduled_time,
    actual_time
  };
  if (await passes(routing, trigger, payload)) routing.fire({
    ...trigger,
    payload
  });
}
function timeText(at) {
  return new Date(at).toISOString().replace(/(\.000)?Z$/, "+00:00");
}

// sdk/testing/state.ts
function addState(routing) {
  const state = new State(routing);
  routing.types.set("state", {});
  const functions = {
    get: (payload) => state.entry(payload)?.value,
    entry: (payload) => state.entry(payload),
    set: (payload) => state.set(payload, jsonCopy(payload.value ?? payload.data ?? null)),
    delete: (payload) => state.delete(payload),
    update: (payload) => state.update(payload),
    list: (payload) => state.entries(payload).map(({ value }) => value),
    list_entries: (payload) => ({
      entries: state.entries(payload).sort(byKey)
    }),
    list_groups: () => ({
      groups: state.groups()
    })
  };
  for (const [name, run] of Object.entries(functions)) {
    routing.builtins.set(`state::${name}`, (payload) => {
      if (typeof payload === "object" && payload !== null && !Array.isArray(payload)) {
        return run(payload);
      }
      throw new EngineError("deserialization_error", `state::${name} takes an object`);
    });
  }
}
var byKey = (a, b) => a.key < b.key ? -1 : 1;
var State = class {
  #routing;
  #scopes = /* @__PURE__ */ new Map();
  #version = 0;
  constructor(routing) {
    this.#routing = routing;
  }
  entry({ scope, key }) {
    const entry = this.#scopes.get(textOf("scope", scope))?.get(textOf("key", key));
    const isOver = entry?.expires_at_ms !== void 0 && entry.expires_at_ms <= this.#routing.clock.wall();
    return isOver ? void 0 : entry;
  }
  entries({ scope, prefix = "" }) {
    const keys = [
      ...this.#scopes.get(textOf("scope", scope))?.keys() ?? []
    ];
    return keys.filter((key) => key.startsWith(String(prefix))).flatMap((key) => {
      const entry = this.entry({
        scope,
        key
      });
      return entry ? [
        {
          key,
          value: entry.value,
          version: entry.version
        }
      ] : [];
    });
  }
  groups() {
    return [
      ...this.#scopes.keys()
    ].filter((scope) => this.entries({
      scope
    }).length > 0).sort();
  }
  set(payload, value, keepsExpiry = false) {
    const before = this.#checkVersion(payload);
    const { scope, key, ttl_ms } = payload;
    const wall = this.#routing.clock.wall();
    const expires_at_ms = keepsExpiry ? before?.expires_at_ms : ttl_ms === void 0 ? void 0 : wall + ttl_ms;
    const entry = {
      value,
      version: ++this.#version,
      updated_at_ms: wall,
      expires_at_ms
    };
    if (!this.#scopes.has(scope)) this.#scopes.set(scope, /* @__PURE__ */ new Map());
    this.#scopes.get(scope).set(key, entry);
    if (!keepsExpiry && ttl_ms !== void 0) this.#expireLater(scope, key, entry, ttl_ms);
    this.#fire(before ? "updated" : "created", scope, key, before?.value ?? null, value);
    return {
      old_value: before?.value ?? null,
      new_value: value
    };
  }
  delete(payload) {
    const before = this.#checkVersion(payload);
    if (before) this.#remove(payload.scope, payload.key, before);
    return before?.value;
  }
  update(payload) {
    const before = this.entry(payload)?.value ?? null;
    let value = jsonCopy(before ?? {});
    const errors = [];
    (payload.ops ?? []).forEach((op, op_index) => {
      try {
        value = applyOp(value, op);
      } catch (thrown) {
        const { code, message } = thrown;
        errors.push({
          op_index,
          code,
          message
        });
      }
    });
    const changed = this.set(payload, value, true);
    return {
      ...changed,
      old_value: before,
      ...errors.length > 0 && {
        errors
      }
    };
  }
  #checkVersion(payload) {
    const entry = this.entry(payload);
    const { expected_version } = payload;
    const current_version = entry?.version ?? 0;
    if (expected_version === void 0 || expected_version === current_version) return entry;
    const message = `The version of ${payload.key} is ${current_version}, not ${expected_version}`;
    throw new EngineError("version_mismatch", message, {
      details: {
        current_version
      }
    });
  }
  #expireLater(scope, key, entry, ttlMs) {
    this.#routing.clock.after(ttlMs, () => {
      if (this.#scopes.get(scope)?.get(key) === entry) this.#remove(scope, key, entry);
    });
  }
  #remove(scope, key, { value }) {
    this.#scopes.get(scope).delete(key);
    this.#fire("deleted", scope, key, value, null);
  }
  #fire(what, scope, key, old_value, new_value) {
    const event_type = `state:${what}`;
    const payload = {
      type: "state",
      event_type,
      scope,
      key,
      old_value,
      new_value
    };
    for (const trigger of this.#routing.triggers("state")) {
      const config = trigger.config ?? {};
      if ((config.scope ?? scope) !== scope || (config.key ?? key) !== key) continue;
      void passes(this.#routing, trigger, payload).then((isPassed) => {
        if (isPassed) this.#routing.fire({
          ...trigger,
          payload
        });
      });
    }
  }
};
function textOf(name, value) {
  if (typeof value === "string" && value !== "") return value;
  throw new EngineError("deserialization_error", `state::*: ${name} must be a string`);
}
function applyOp(root, { type, path = "", value = null, by = 0 }) {
  const parts = Array.isArray(path) ? path.map(String) : path === "" ? [] : [
    String(path)
  ];
  if (parts.length === 0) {
    if (type === "set") return value;
    if (type === "remove") return null;
    return combined(String(type), root, value, Number(by), false);
  }
  if (typeof root !== "object" || root === null || Array.isArray(root)) {
    const name = type === "decrement" ? "increment" : type;
    throw new EngineError(`${name}.target_not_object`, "the target is not an object");
  }
  const [first, ...rest] = parts;
  const { [first]: member, ...others } = root;
  if (type === "remove") return others;
  const changed = rest.length > 0 ? applyOp(member ?? {}, {
    type,
    path: rest,
    value,
    by
  }) : type === "set" ? value : combined(String(type), member, value, Number(by), Array.isArray(path));
  return {
    ...root,
    [first]: changed
  };
}
function combined(type, now, value, by, isNested) {
  const isMissing = now === void 0 || now === null;
  switch (type) {
    case "increment":
    case "decrement": {
      const change = type === "increment" ? by : -by;
      if (isMissing) return change;
      if (typeof now === "number") return now + change;
      throw new EngineError(`${type}.not_number`, "the value is not a number");
    }
    case "append":
      if (isMissing) return typeof value === "string" && !isNested ? value : [
        value
      ];
      if (Array.isArray(now)) return [
        ...now,
        value
      ];
      if (typeof now === "string" && typeof value === "string") return now + value;
      throw new EngineError("append.type_mismatch", "the value is not a list");
    case "merge":
      if (typeof value === "object" && value !== null && !Array.isArray(value)) {
        return {
          ...isMissing ? {} : now,
          ...value
        };
      }
      throw new EngineError("merge.value.not_an_object", "the value is not an object");
    default:
      throw new EngineError("deserialization_error", `there is no operation ${type}`);
  }
}

// sdk/testing/engine.ts
var realTimeout = globalThis.setTimeout;
var QUIET_MS = 50;
var SETTLE_MS_MAX = 1e4;
function startTestEngine(options = {}) {
  return new TestEngine(options);
}
var TestEngine = class {
  /** Connects a worker, as `dial` of its options: for tests with several engines. */
  dial;
  /** The time of the test, as `clock` of a worker's options. */
  clock;
  #routing;
  #queues;
  #takeBack;
  /** Use {@linkcode startTestEngine}. */
  constructor({ now = Date.UTC(2026, 0), queues = [] }) {
    this.clock = new TestClock(Number(now));
    this.#routing = new Routing(this.clock);
    this.#queues = new Queues(this.#routing, queues);
    addState(this.#routing);
    addTopics(this.#routing);
    addSchedules(this.#routing);
    this.dial = dialTo(this.#routing);
    this.#takeBack = offerConnection({
      dial: this.dial,
      clock: this.clock
    });
  }
  /** Calls a function of a worker, a fake or a built-in one, such as `state::get`. */
  async call(function_id, payload, options = {}) {
    await this.#connected();
    const { metadata, ...rest } = options;
    const call = {
      function_id,
      payload,
      metadata,
      ...rest
    };
    return await this.#routing.call(call);
  }
  /**
   * Provides a function, in place of any worker's with this id.
   *
   * @param implementation A value that it returns, or a function, which may be async and throw.
   */
  fake(function_id, implementation, namespace) {
    const own = typeof implementation === "function" ? implementation : () => implementation;
    const { fakes, seen } = this.#routing;
    const key = keyOf(namespace, function_id);
    fakes.set(key, own);
    this.#routing.functionAdded();
    const from = seen.length;
    return {
      get calls() {
        return seen.slice(from).filter((call) => call.function_id === function_id);
      },
      remove: () => void (fakes.get(key) === own && fakes.delete(key))
    };
  }
  /** The calls that came to a function so far, or to all functions. */
  calls(function_id) {
    const { seen } = this.#routing;
    return seen.filter((call) => function_id === void 0 || call.function_id === function_id);
  }
  /**
   * Fails unless a function was called with a payload that has these members.
   *
   * @throws {EngineError} `assertion_failed`, with the calls that there were.
   */
  assertCalled(function_id, payload) {
    const calls = this.calls(function_id);
    const wanted = payload === void 0 ? void 0 : jsonCopy(payload);
    if (calls.some((call) => wanted === void 0 || contains(call.payload, wanted))) return;
    const how = wanted === void 0 ? "" : ` with ${JSON.stringify(wanted)}`;
    const found = calls.length === 0 ? "it was not called" : `its calls: ${calls.map((call) => JSON.stringify(call.payload)).join(", ")}`;
    throw new EngineError("assertion_failed", `${function_id} was not called${how}; ${found}`);
  }
  /** Fails if a function was called. @throws {EngineError} `assertion_failed` */
  assertNotCalled(function_id) {
    const calls = this.calls(function_id);
    if (calls.length === 0) return;
    const payloads = calls.map(({ payload }) => JSON.stringify(payload)).join(", ");
    throw new EngineError("assertion_failed", `${function_id} was called with ${payloads}`);
  }
  /** Sends an HTTP request to the triggers of type `http`, such as `("POST", "/orders?dry=1")`. */
  async http(method, path, options = {}) {
    await this.#connected();
    return await sendRequest(this.#routing, method, path, options);
  }
  /** Puts a call into a queue; {@linkcode TestEngine.settle} waits until it has run. */
  async enqueue(function_id, payload, { queue = "default", ...options } = {}) {
    await this.#connected();
    const data = payload === void 0 ? null : jsonCopy(payload);
    const job = {
      ...options,
      queue,
      function_id,
      data
    };
    const receipt = await this.#routing.call({
      function_id: ENQUEUE,
      payload: job
    });
    await this.settle();
    return this.#queues.jobs.find(({ id }) => id === receipt.messageReceiptId);
  }
  /** The jobs of a queue, or of all queues, in the order in which they came. */
  jobs(queue) {
    return this.#queues.jobs.filter((job) => queue === void 0 || job.queue === queue);
  }
  /** Publishes a message, and waits until its subscribers have handled it. */
  async publish(topic, data = null) {
    await this.call("publish", {
      topic,
      data
    });
    await this.settle();
  }
  /**
   * Fires the triggers of any type, such as one that a worker provides, with a payload, and waits
   * until their functions have ended.
   *
   * @param where Only the triggers of this function, or with these members in their config.
   * @throws {EngineError} `trigger_not_found` if there is none.
   */
  async fire(type, payload, where = {}) {
    await this.#connected();
    const { function_id, config } = where;
    const found = this.#routing.triggers(type).filter((trigger) => (function_id === void 0 || trigger.function_id === function_id) && (config === void 0 || contains(trigger.config ?? {}, jsonCopy(config))));
    if (found.length === 0) {
      throw new EngineError("trigger_not_found", `No trigger of the type ${type} fits`);
    }
    for (const trigger of found) this.#routing.fire({
      ...trigger,
      payload: jsonCopy(payload)
    });
    await this.settle();
  }
  /** The time, in milliseconds since 1970. */
  get now() {
    return this.clock.wall();
  }
  /**
   * Lets time pass: what is due runs in its order, each thing after what it causes has ended.
   * Timers of the program itself (`setTimeout`) are not those of the engine.
   */
  async advance(ms) {
    await this.#connected();
    await this.#quiet();
    const until = this.clock.now() + ms;
    while (this.clock.step(until)) await this.#quiet();
    await this.#quiet();
  }
  /**
   * Waits until all calls have ended, also those of queues and triggers.
   *
   * @throws {EngineError} `timeout` if one has not ended after 10 s of real time.
   */
  async settle() {
    await this.#connected();
    const limit = performance.now() + SETTLE_MS_MAX;
    await this.#quiet();
    while (this.#routing.openCalls.length > 0) {
      if (performance.now() > limit) {
        const ids = this.#routing.openCalls.map(({ function_id }) => function_id).join(", ");
        const hint = "if they wait for time to pass, call engine.advance(ms)";
        throw new EngineError("timeout", `Calls have not ended: ${ids}; ${hint}`);
      }
      await turn();
    }
  }
  /**
   * Forgets calls, fakes, jobs and the state, for the next test of a file whose worker is imported
   * once. Workers, their functions and triggers stay, and so does the time.
   */
  reset() {
    this.#routing.seen.length = 0;
    this.#routing.fakes.clear();
    this.#queues.jobs.length = 0;
    addState(this.#routing);
  }
  /**
   * Ends the calls that run. Workers stay as they are, with nothing to do; further ones connect to
   * their address again.
   */
  async stop() {
    this.#takeBack();
    this.#routing.stop();
    await turn();
  }
  /** Calls {@linkcode TestEngine.stop} at the end of an `await using` block. */
  [Symbol.asyncDispose]() {
    return this.stop();
  }
  /** What workers of this tick have sent is handled. */
  async #connected() {
    await turn();
  }
  /** Waits until nothing happens any more, though handlers may wait for time to pass. */
  async #quiet() {
    let [activity, since] = [
      -1,
      performance.now()
    ];
    do {
      if (activity !== this.#routing.activity) since = performance.now();
      activity = this.#routing.activity;
      await turn();
    } while (activity !== this.#routing.activity || this.#routing.openCalls.length > 0 && performance.now() - since < QUIET_MS);
  }
};
var ENQUEUE = "engine::queue::enqueue";
function turn() {
  return new Promise((resolve) => void realTimeout(resolve, 0));
}
function contains(value, wanted) {
  if (typeof wanted !== "object" || wanted === null) return value === wanted;
  if (typeof value !== "object" || value === null) return false;
  if (Array.isArray(wanted)) {
    return Array.isArray(value) && value.length === wanted.length && wanted.every((each, i) => contains(value[i], each));
  }
  return Object.entries(wanted).every(([name, each]) => {
    const found = Object.hasOwn(value, name) ? value[name] : void 0;
    return found !== void 0 && contains(found, each);
  });
}
export {
  TestEngine,
  startTestEngine
};
