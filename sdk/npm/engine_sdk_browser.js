// @ts-self-types="./engine_sdk_browser.d.ts"
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
function thrownText(thrown) {
  try {
    return String(thrown instanceof Error ? thrown.message : thrown);
  } catch {
    return "a value without a text was thrown";
  }
}

// sdk/typescript/wire/limits.ts
var WORKER_PORT = 49134;
var ENGINE_URL_DEFAULT = `ws://127.0.0.1:${WORKER_PORT}`;
var TIMEOUT_MS_MAX = 6048e5;
var ID_CHARS_MAX = 1024;
var OPEN_TIMEOUT_MS = 1e4;
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

// sdk/typescript/arguments.ts
var MESSAGE_BYTES_MAX = 64 * 1024 * 1024;
var SCRATCH_BYTES = 64 * 1024;
function readUrl(url) {
  if (typeof url !== "string" || !URL.canParse(url)) {
    throw invalid(`Engine address ${showUrl(url)} is not a URL; try ws://127.0.0.1:49134`);
  }
  const parsed = new URL(url);
  if (parsed.protocol === "http:") parsed.protocol = "ws:";
  if (parsed.protocol === "https:") parsed.protocol = "wss:";
  if (parsed.protocol !== "ws:" && parsed.protocol !== "wss:") {
    throw invalid(`Engine address ${showUrl(url)} must start with ws:// or wss://`);
  }
  parsed.hash = "";
  return parsed.href;
}
function withoutSecrets(url) {
  return url.replace(/[?#].*/s, "").replace(/\/\/[^/]*@/, "//");
}
function checkId(what, id, example) {
  if (typeof id !== "string" || id === "") {
    throw invalid(`${what} must be a string such as ${example}, got ${show(id)}`);
  }
  if (id.length > ID_CHARS_MAX) {
    throw invalid(`${what} has ${id.length} characters; at most ${ID_CHARS_MAX} are allowed`);
  }
}
function checkReconnect({ firstMs, maxMs, maxAttempts }) {
  for (const [name, value] of Object.entries({
    firstMs,
    maxMs,
    maxAttempts
  })) {
    if (value === void 0 || value > 0) continue;
    throw invalid(`reconnect.${name} must be a number above 0, got ${show(value)}`);
  }
}
function invalid(message) {
  return new EngineError("INVALID_ARGUMENTS", message);
}
function showUrl(url) {
  return show(typeof url === "string" ? withoutSecrets(url) : url);
}
function show(value) {
  if (typeof value === "string") return JSON.stringify(value.slice(0, 100));
  if (typeof value === "function") return "a function";
  if (typeof value === "object" && value !== null) {
    return Array.isArray(value) ? "a list" : "an object";
  }
  return String(value);
}

// sdk/typescript/browser_socket.ts
var BrowserSocket = class {
  #socket;
  #events;
  #timer;
  // Browsers do not report why a connection failed; Deno does.
  #problem = "no connection";
  #isOver = false;
  /** `protocols` are offered; a browser fails the connection if the server selects none of them. */
  constructor(url, events, protocols = []) {
    const socket = this.#socket = new WebSocket(url, [
      ...protocols
    ]);
    this.#events = events;
    this.#timer = setTimeout(() => this.end(`no answer within ${OPEN_TIMEOUT_MS} ms`), OPEN_TIMEOUT_MS);
    socket.binaryType = "arraybuffer";
    socket.onopen = () => {
      clearTimeout(this.#timer);
      this.#problem = "";
      if (!this.#isOver) events.opened();
    };
    socket.onmessage = ({ data }) => {
      if (this.#isOver) return;
      if (typeof data === "string") events.text(data);
      else events.binary(new Uint8Array(data));
    };
    socket.onerror = (event) => {
      this.#problem = event.message || this.#problem;
    };
    socket.onclose = ({ code, reason }) => this.#closed(code || 1006, reason || this.#problem);
  }
  /** Bytes that are not sent yet. */
  get queuedBytes() {
    return this.#socket.bufferedAmount;
  }
  /** Whether messages can be sent. */
  get isOpen() {
    return !this.#isOver && this.#socket.readyState === WebSocket.OPEN;
  }
  /** Sends a message; one that is not open does nothing. */
  send(message) {
    if (this.isOpen) this.#socket.send(message);
  }
  /** Closes when all is sent; `closed` follows. */
  close(code, reason) {
    if (!this.#isOver) this.#socket.close(code, reason);
  }
  /** Closes, and is over at once. */
  end(reason) {
    if (this.#isOver) return;
    this.#socket.close();
    this.#closed(1006, reason);
  }
  #closed(code, reason) {
    if (this.#isOver) return;
    this.#isOver = true;
    clearTimeout(this.#timer);
    this.#events.closed(code, reason);
  }
};

// sdk/typescript/connection.ts
var RECONNECT_FIRST_MS = 1e3;
var RECONNECT_MAX_MS = 1800;
var REFUSED_MAX_MS = 3e4;
var RECONNECT_JITTER = 0.3;
var DIALS_MAX = 2;
var UNSENT_BYTES_MAX = 64 * 1024 * 1024;
var UNSENT_BYTES_END = 3 * UNSENT_BYTES_MAX;
var CHECK_CHARS = 1024 * 1024;
var FULL_CHECK_MS = 100;
var STALLED_MS = 3e4;
var ReconnectingConnection = class {
  #setup;
  #events;
  #ended;
  #resolveEnded = () => {
  };
  #state = "connecting";
  /** The attempt that has opened. */
  #attempt;
  /** The attempts in progress, oldest first. */
  #dialing = [];
  /** All attempts whose transport has not closed. */
  #unclosed = /* @__PURE__ */ new Set();
  #cancelRetry;
  #failures = 0;
  /** Connections in a row that were refused after they had opened. */
  #refusals = 0;
  constructor(setup, events) {
    this.#setup = setup;
    this.#events = events;
    this.#ended = new Promise((resolve) => this.#resolveEnded = resolve);
  }
  get state() {
    return this.#state;
  }
  /** The open connection, if there is one. */
  get current() {
    return this.#attempt?.isOpen ? this.#attempt : void 0;
  }
  /** Whether it will never be open again. */
  get isFinal() {
    return this.#state === "failed" || this.#state === "disconnected";
  }
  /** Connects for the first time. */
  start() {
    this.#dial();
  }
  /** Closes the connection for good; resolves when all transports have closed. */
  stop(state) {
    if (!this.isFinal) this.#moveTo(state);
    this.#stopTimer();
    if (this.#attempt) end(this.#attempt);
    for (const attempt of [
      ...this.#unclosed
    ]) attempt.transport?.close(1e3, "");
    this.#resolveIfEnded();
    return this.#ended;
  }
  #dial() {
    this.#stopTimer();
    const { url, dial, dialOptions } = this.#setup;
    const attempt = {
      isOpen: false,
      isFull: false,
      uncheckedChars: 0,
      late: [],
      isWatched: false,
      unsentBytes: 0,
      stuckSince: 0,
      isOver: false,
      transport: void 0,
      get queuedBytes() {
        return attempt.transport?.queuedBytes;
      },
      send: (message) => {
        if (!attempt.isOpen) return;
        attempt.transport?.send(message);
        attempt.uncheckedChars += message.length;
        if (attempt.isFull || attempt.uncheckedChars >= CHECK_CHARS) this.#checkUnsent(attempt);
      },
      sendLate: (message) => {
        if (attempt.isOpen && (attempt.isFull || attempt.late.length > 0)) {
          attempt.late.push(message);
        } else if (attempt.isOpen) message.send();
        else message.fail();
      },
      judged: (isAdmitted) => this.#refusals = isAdmitted ? 0 : this.#refusals + 1
    };
    this.#dialing.push(attempt);
    this.#unclosed.add(attempt);
    let openedEarly = false;
    const events = {
      // A transport without a socket may open before dial() has returned it.
      opened: () => attempt.transport ? this.#opened(attempt) : openedEarly = true,
      text: (message) => this.#text(message, attempt),
      binary: (bytes) => this.#text(new TextDecoder().decode(bytes), attempt),
      closed: (code, reason) => this.#closed(attempt, reason || `code ${code}`)
    };
    attempt.transport = dial(url, events, dialOptions);
    if (openedEarly) this.#opened(attempt);
    if (this.#dialing.includes(attempt)) this.#dialAfter(this.#delay());
  }
  /** Dials after a delay, unless a connection opens before. */
  #dialAfter(delayMs) {
    this.#cancelRetry = this.#setup.clock.after(delayMs, () => this.#dialAgain());
  }
  /** Dials beside the oldest attempt that is not answered. */
  #dialAgain() {
    this.#cancelRetry = void 0;
    if (this.#failures + this.#dialing.length >= this.#attemptsMax) return;
    this.#moveTo("reconnecting");
    if (this.#dialing.length === DIALS_MAX) {
      this.#failures++;
      abandon(this.#dialing.pop());
    }
    this.#dial();
  }
  #opened(attempt) {
    if (attempt.isOver || this.isFinal) return;
    this.#stopTimer();
    const others = this.#dialing.filter((other) => other !== attempt);
    this.#dialing = [];
    this.#attempt = attempt;
    attempt.isOpen = true;
    this.#failures = 0;
    for (const other of others) abandon(other);
    this.#events.opened(attempt);
    if (attempt.isOpen) this.#moveTo("connected");
  }
  #checkUnsent(attempt) {
    attempt.uncheckedChars = 0;
    const bytes = attempt.queuedBytes ?? 0;
    attempt.isFull = bytes > UNSENT_BYTES_MAX;
    if (bytes > UNSENT_BYTES_END) attempt.transport?.close(1008, "the engine does not read");
    if (!attempt.isFull || attempt.isWatched) return;
    attempt.isWatched = true;
    attempt.unsentBytes = bytes;
    attempt.stuckSince = this.#setup.clock.now();
    this.#watchFull(attempt);
  }
  #watchFull(attempt) {
    this.#setup.clock.after(FULL_CHECK_MS, () => {
      if (!attempt.isOpen) return;
      const bytes = attempt.queuedBytes ?? 0;
      const now = this.#setup.clock.now();
      if (bytes < attempt.unsentBytes) attempt.stuckSince = now;
      attempt.unsentBytes = bytes;
      attempt.isFull = bytes > UNSENT_BYTES_MAX;
      if (now - attempt.stuckSince >= STALLED_MS) failLate(attempt);
      while (!attempt.isFull && attempt.late.length > 0) attempt.late.shift().send();
      attempt.isWatched = attempt.isFull;
      if (attempt.isWatched) this.#watchFull(attempt);
    });
  }
  #text(message, attempt) {
    if (attempt.isOpen && message !== "") this.#events.text(message, attempt);
  }
  #closed(attempt, reason) {
    this.#unclosed.delete(attempt);
    if (this.isFinal) return this.#resolveIfEnded();
    if (attempt.isOver) return;
    attempt.isOver = true;
    const wasOpen = attempt.isOpen;
    end(attempt);
    this.#dialing = this.#dialing.filter((other) => other !== attempt);
    if (attempt === this.#attempt) this.#attempt = void 0;
    if (wasOpen) this.#events.lost(reason);
    else {
      this.#failures++;
      this.#refusals = 0;
    }
    if (this.isFinal) return;
    if (this.#dialing.length > 0) this.#events.failed(reason, 0);
    else this.#retry(reason);
  }
  #retry(reason) {
    this.#stopTimer();
    if (Math.max(this.#failures, this.#refusals) >= this.#attemptsMax) {
      this.#events.failed(reason, void 0);
      void this.stop("failed");
      return;
    }
    const delayMs = this.#delayAfterLoss();
    this.#moveTo("reconnecting");
    this.#events.failed(reason, delayMs);
    if (!this.isFinal) this.#dialAfter(delayMs);
  }
  get #attemptsMax() {
    return this.#setup.reconnect.maxAttempts ?? Infinity;
  }
  /** The delay before the next dial: twice as long with each that failed or is not answered. */
  #delay() {
    const { maxMs = RECONNECT_MAX_MS } = this.#setup.reconnect;
    return this.#doubled(this.#failures + this.#dialing.length, maxMs);
  }
  #delayAfterLoss() {
    if (this.#refusals === 0) return this.#delay();
    return this.#doubled(this.#refusals, Math.max(REFUSED_MAX_MS, this.#setup.reconnect.maxMs ?? 0));
  }
  #doubled(attempts, maxMs) {
    const { firstMs = RECONNECT_FIRST_MS } = this.#setup.reconnect;
    const wantedMs = firstMs * 2 ** Math.max(0, attempts - 1);
    const meanMs = Math.min(maxMs / (1 + RECONNECT_JITTER), wantedMs);
    return meanMs * (1 + RECONNECT_JITTER * (2 * this.#setup.random() - 1));
  }
  #stopTimer() {
    this.#cancelRetry?.();
    this.#cancelRetry = void 0;
  }
  #resolveIfEnded() {
    if (this.#unclosed.size === 0) this.#resolveEnded();
  }
  #moveTo(state) {
    if (state === this.#state) return;
    this.#state = state;
    this.#events.state(state);
  }
};
function end(attempt) {
  attempt.isOpen = false;
  failLate(attempt);
}
function failLate(attempt) {
  for (const message of attempt.late.splice(0)) message.fail();
}
function abandon(attempt) {
  attempt.isOver = true;
  attempt.transport?.close(1e3, "");
}

// sdk/typescript/platform.ts
var platformClock = {
  now: () => performance.now(),
  after(ms, task) {
    const timer = setTimeout(task, ms);
    return () => clearTimeout(timer);
  },
  wall: wallTime
};
var WALL_SLACK_MS = 5;
var originMs = performance.timeOrigin;
function wallTime() {
  const [now, date] = [
    performance.now(),
    Date.now()
  ];
  if (Math.abs(date - originMs - now) > WALL_SLACK_MS) originMs = date - now;
  return originMs + now;
}

// sdk/browser/events.ts
function keyOf({ streamName, groupId, id }) {
  return JSON.stringify([
    streamName,
    groupId,
    id
  ]);
}
function readMessage(text) {
  let message;
  try {
    message = JSON.parse(text);
  } catch {
    return void 0;
  }
  if (!isObject(message)) return void 0;
  const { type, streamName, groupId, id = null, event, timestamp } = message;
  if (type === "error") {
    const { subscriptionId = null, error = null } = message;
    const isKnown = subscriptionId === null || typeof subscriptionId === "string";
    return isKnown ? {
      type,
      subscriptionId,
      error
    } : void 0;
  }
  const isEvent = type === "stream" && typeof streamName === "string" && typeof groupId === "string" && (id === null || typeof id === "string") && isObject(event);
  if (!isEvent) return void 0;
  const at = typeof timestamp === "number" ? timestamp : 0;
  return readEvent({
    streamName,
    groupId,
    id
  }, event, at);
}
function readEvent(topic, event, timestamp) {
  const { type, data = null, ids } = event;
  const { id } = topic;
  switch (type) {
    case "unauthorized":
      return {
        type,
        topic
      };
    case "sync":
      return {
        type,
        topic,
        data,
        ids: isTexts(ids) ? ids : void 0,
        timestamp
      };
    case "create":
    case "update":
    case "delete":
      if (id === null) return void 0;
      return {
        type: "event",
        topic,
        event: {
          type,
          id,
          item: data,
          timestamp
        }
      };
    case "event": {
      const sent = event.event;
      if (!isObject(sent) || typeof sent.type !== "string") return void 0;
      const { type: name, data: data2 = null } = sent;
      return {
        type,
        topic,
        event: {
          type,
          id,
          name,
          data: data2,
          timestamp
        }
      };
    }
    default:
      return void 0;
  }
}
var Items = class {
  #items = /* @__PURE__ */ new Map();
  #idOf;
  constructor(idOf) {
    this.#idOf = idOf;
  }
  /** The items by id; changes with every event. */
  get map() {
    return this.#items;
  }
  /** Replaces them by those of a `sync`. Without `ids`, the data has to say which is which. */
  replace({ streamName, id }, data, ids) {
    this.#items.clear();
    if (id !== null) {
      if (data !== null) this.#items.set(id, data);
      return;
    }
    const list = Array.isArray(data) ? data : [];
    list.forEach((item, at) => {
      this.#items.set(ids?.[at] ?? this.#idOf(item, streamName) ?? `#${at}`, item);
    });
  }
  /** Applies a change. */
  apply(event) {
    if (event.type === "delete") this.#items.delete(event.id);
    else if (event.type === "create" || event.type === "update") {
      this.#items.set(event.id, event.item);
    }
  }
};
function ownId(item) {
  return isObject(item) && typeof item.id === "string" ? item.id : void 0;
}
function isTexts(value) {
  return Array.isArray(value) && value.every((each) => typeof each === "string");
}
function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

// sdk/browser/subscription.ts
var BUFFER_EVENTS_DEFAULT = 1e3;
var BUFFER_CHARS_MAX = 8 * 1024 * 1024;
var Subscription = class {
  stream;
  group;
  items;
  #source;
  #eventsMax;
  #signal;
  #close = () => this.close();
  #buffer = [];
  #chars = 0;
  #waiters = [];
  #error;
  #isOver = false;
  /** @throws {EngineError} `INVALID_ARGUMENTS` */
  constructor(source, { signal, bufferEvents }) {
    const eventsMax = bufferEvents ?? BUFFER_EVENTS_DEFAULT;
    if (!Number.isSafeInteger(eventsMax) || eventsMax < 1) {
      throw invalid(`bufferEvents must be a whole number above 0, got ${show(bufferEvents)}`);
    }
    this.stream = source.stream;
    this.group = source.group;
    this.items = source.items;
    this.#source = source;
    this.#eventsMax = eventsMax;
    this.#signal = signal;
    signal?.addEventListener("abort", this.#close, {
      once: true
    });
  }
  get isLive() {
    return !this.#isOver && this.#source.isLive();
  }
  /** Adds an event whose message has so many characters. */
  push(event, chars) {
    if (this.#isOver) return;
    const waiter = this.#waiters.shift();
    if (waiter) return waiter.resolve({
      done: false,
      value: event
    });
    this.#buffer.push({
      event,
      chars
    });
    this.#chars += chars;
    if (this.#buffer.length > this.#eventsMax || this.#chars > BUFFER_CHARS_MAX) this.#compact();
  }
  /** Ends the iteration with an error, after what waits. */
  fail(error) {
    if (this.#isOver) return;
    this.#error = error;
    this.#end();
  }
  close() {
    if (this.#isOver) return;
    this.#end();
    this.#source.ended(this);
  }
  next() {
    const first = this.#buffer.shift();
    if (first) {
      this.#chars -= first.chars;
      return Promise.resolve({
        done: false,
        value: first.event
      });
    }
    if (!this.#isOver) {
      return new Promise((resolve, reject) => this.#waiters.push({
        resolve,
        reject
      }));
    }
    const error = this.#error;
    this.#error = void 0;
    return error ? Promise.reject(error) : Promise.resolve({
      done: true,
      value: void 0
    });
  }
  return() {
    this.#buffer = [];
    this.#error = void 0;
    this.close();
    return Promise.resolve({
      done: true,
      value: void 0
    });
  }
  [Symbol.asyncIterator]() {
    return this;
  }
  async [Symbol.asyncDispose]() {
    await this.return();
  }
  /** Puts one `sync` in the place of all that waits. */
  #compact() {
    const missed = this.#buffer.reduce((sum, { event }) => sum + (event.type === "sync" ? event.missed : 1), 0);
    this.#buffer = [
      {
        event: this.#source.sync(missed),
        chars: 0
      }
    ];
    this.#chars = 0;
  }
  #end() {
    this.#isOver = true;
    this.#signal?.removeEventListener("abort", this.#close);
    const [first, ...others] = this.#waiters.splice(0);
    if (first && this.#error) {
      first.reject(this.#error);
      this.#error = void 0;
    } else first?.resolve({
      done: true,
      value: void 0
    });
    for (const waiter of others) waiter.resolve({
      done: true,
      value: void 0
    });
  }
};

// sdk/browser/client.ts
var SUBPROTOCOL = "engine.stream.v1";
var RECONNECT = {
  firstMs: 1e3,
  maxMs: 15e3
};
var IDLE_MS = 2e3;
var RETRIES_MAX = 6;
var REJOIN_FIRST_MS = 500;
var NOT_ADMITTED = 1008;
function connectStreams(url, options = {}) {
  return new Client(url, options);
}
var Client = class {
  #url;
  #options;
  #clock;
  #topics = /* @__PURE__ */ new Map();
  #connection;
  #cancelIdle;
  #ids = 0;
  /** Connections in a row that the engine opened, but did not admit. */
  #rejections = 0;
  #wasAdmitted = false;
  #isClosed = false;
  constructor(url, options) {
    if (typeof url !== "function") readUrl(url);
    const { token, tokenIn, reconnect } = options;
    if (tokenIn !== void 0 && tokenIn !== "protocol" && tokenIn !== "query") {
      throw invalid(`tokenIn must be "protocol" or "query", got ${show(tokenIn)}`);
    }
    if (typeof token !== "function") checkToken(token, tokenIn);
    checkReconnect(reconnect ?? {});
    this.#url = url;
    this.#options = options;
    this.#clock = options.clock ?? platformClock;
  }
  get state() {
    return this.#connection?.state ?? "disconnected";
  }
  subscribe(streamName, groupId, options = {}) {
    checkId("The name of a stream", streamName, "chat");
    checkId("A group", groupId, "room-1");
    if (options.id !== void 0) checkId("The id of an item", options.id, "m7");
    if (this.#isClosed) throw new EngineError("SHUTDOWN", "The client of streams is closed");
    const place = {
      streamName,
      groupId,
      id: options.id ?? null
    };
    const known = this.#topics.get(keyOf(place));
    const topic = known ?? this.#createTopic(place);
    const subscription = new Subscription({
      stream: streamName,
      group: groupId,
      items: topic.items.map,
      isLive: () => topic.isLive,
      sync: (missed) => syncOf(topic, missed),
      ended: (ended) => this.#leave(topic, ended)
    }, options);
    if (options.signal?.aborted) subscription.close();
    else this.#add(topic, subscription, known !== void 0);
    return subscription;
  }
  async close() {
    this.#isClosed = true;
    for (const { subscriptions } of [
      ...this.#topics.values()
    ]) {
      for (const subscription of [
        ...subscriptions
      ]) subscription.close();
    }
    await this.#disconnect();
  }
  [Symbol.asyncDispose]() {
    return this.close();
  }
  #createTopic(place) {
    return {
      ...place,
      subscriptionId: `s${++this.#ids}`,
      items: new Items(this.#options.idOf ?? ownId),
      subscriptions: /* @__PURE__ */ new Set(),
      isLive: false,
      wasLive: false,
      timestamp: 0,
      failures: 0,
      cancelRejoin: void 0
    };
  }
  #add(topic, subscription, isKnown) {
    topic.subscriptions.add(subscription);
    this.#cancelIdle?.();
    this.#cancelIdle = void 0;
    if (isKnown) {
      if (topic.isLive) subscription.push(syncOf(topic, 0), 0);
      return;
    }
    this.#topics.set(keyOf(topic), topic);
    if (!this.#connection || this.#connection.isFinal) this.#connect();
    else this.#join(topic);
  }
  /** One iterator of a topic has ended; the engine hears of the last. */
  #leave(topic, subscription) {
    topic.subscriptions.delete(subscription);
    if (topic.subscriptions.size > 0 || this.#topics.get(keyOf(topic)) !== topic) return;
    this.#remove(topic);
    this.#say("leave", topic);
  }
  #remove(topic) {
    topic.cancelRejoin?.();
    topic.isLive = false;
    this.#topics.delete(keyOf(topic));
    if (this.#topics.size > 0) return;
    this.#cancelIdle = this.#clock.after(IDLE_MS, () => void this.#disconnect());
  }
  #connect() {
    const { reconnect, random = Math.random, onState } = this.#options;
    this.#rejections = 0;
    const connection = this.#connection = new ReconnectingConnection({
      url: typeof this.#url === "string" ? this.#url : "",
      dial: (_, events) => this.#dial(events),
      dialOptions: {},
      clock: this.#clock,
      reconnect: {
        ...RECONNECT,
        ...reconnect
      },
      random
    }, {
      opened: (opened) => {
        for (const topic of this.#topics.values()) this.#join(topic, opened);
      },
      text: (text) => this.#receive(text),
      lost: () => {
        for (const topic of this.#topics.values()) this.#pause(topic);
      },
      failed: (reason, retryMs) => this.#failed(reason, retryMs),
      state: (state) => onState?.(state)
    });
    connection.start();
  }
  async #disconnect(state = "disconnected") {
    this.#cancelIdle?.();
    this.#cancelIdle = void 0;
    const connection = this.#connection;
    this.#connection = void 0;
    await connection?.stop(state);
  }
  #join(topic, connection) {
    topic.cancelRejoin?.();
    topic.cancelRejoin = void 0;
    this.#say("join", topic, connection);
  }
  #say(type, { subscriptionId, streamName, groupId, id }, connection = this.#connection?.current) {
    const data = {
      subscriptionId,
      streamName,
      groupId,
      ...id !== null && {
        id
      }
    };
    connection?.send(JSON.stringify({
      type,
      data
    }));
  }
  /** Nothing is known of a topic until its next `sync`. */
  #pause(topic) {
    topic.isLive = false;
    topic.cancelRejoin?.();
    topic.cancelRejoin = void 0;
  }
  #receive(text) {
    const message = readMessage(text);
    if (!message) {
      const error = "The engine sent a message that is not understood";
      return this.#report(new EngineError("bad_message", error));
    }
    if (message.type === "error") return this.#refused(message);
    const topics = this.#topicsOf(message);
    for (const topic of topics) this.#hear(topic, message, text.length);
  }
  /** An event of an item concerns its group, too; the other messages are of one topic. */
  #topicsOf({ type, topic }) {
    const places = type === "event" && topic.id !== null ? [
      topic,
      {
        ...topic,
        id: null
      }
    ] : [
      topic
    ];
    return places.flatMap((place) => this.#topics.get(keyOf(place)) ?? []);
  }
  #hear(topic, message, chars) {
    if (message.type === "unauthorized") {
      const what = `${topic.groupId} of the stream ${topic.streamName}`;
      return this.#fail(topic, new EngineError("unauthorized", `You may not follow ${what}`));
    }
    if (message.type === "sync") {
      topic.items.replace(topic, message.data, message.ids);
      topic.timestamp = message.timestamp;
      topic.isLive = topic.wasLive = this.#wasAdmitted = true;
      topic.failures = this.#rejections = 0;
      const event = syncOf(topic, 0);
      for (const subscription of [
        ...topic.subscriptions
      ]) subscription.push(event, chars);
      return;
    }
    if (!topic.isLive) return;
    topic.items.apply(message.event);
    topic.timestamp = message.event.timestamp;
    for (const subscription of [
      ...topic.subscriptions
    ]) subscription.push(message.event, chars);
  }
  #refused({ subscriptionId, error: body }) {
    const { code, message, details } = normaliseError(body);
    const error = new EngineError(code, message, details && {
      details
    });
    const topic = [
      ...this.#topics.values()
    ].find((it) => it.subscriptionId === subscriptionId);
    if (!topic) return this.#report(error);
    topic.isLive = false;
    const retries = topic.wasLive && code !== "bad_message" && topic.failures < RETRIES_MAX;
    if (!retries) return this.#fail(topic, error);
    const delayMs = REJOIN_FIRST_MS * 2 ** topic.failures++;
    topic.cancelRejoin = this.#clock.after(delayMs, () => this.#join(topic));
  }
  #fail(topic, error) {
    this.#remove(topic);
    for (const subscription of [
      ...topic.subscriptions
    ]) subscription.fail(error);
  }
  #failAll(error) {
    for (const topic of [
      ...this.#topics.values()
    ]) this.#fail(topic, error);
    void this.#disconnect("failed");
  }
  #failed(reason, retryMs) {
    const error = new EngineError("engine_unreachable", `No connection to the engine: ${reason}`);
    this.#report(error);
    if (retryMs === void 0) this.#failAll(error);
  }
  /** The engine opened a connection and closed it, because it does not admit this client. */
  #rejected(reason) {
    this.#rejections++;
    if (this.#wasAdmitted && this.#rejections <= RETRIES_MAX) return;
    this.#failAll(new EngineError("unauthorized", reason || "The engine does not admit this client"));
  }
  #dial(events) {
    const own = {
      opened: () => events.opened(),
      text: (text) => events.text(text),
      binary: (bytes) => events.binary(bytes),
      closed: (code, reason) => {
        events.closed(code, reason);
        if (code === NOT_ADMITTED) this.#rejected(reason);
      }
    };
    const { token, tokenIn, dial = dialStream } = this.#options;
    const open = (url, given) => {
      checkToken(given, tokenIn);
      const address = given !== void 0 && tokenIn === "query" ? withToken(url, given) : url;
      const protocols = given !== void 0 && tokenIn !== "query" ? [
        SUBPROTOCOL,
        given
      ] : [];
      return dial(readUrl(address), own, {
        protocols
      });
    };
    const isReady = typeof this.#url === "string" && typeof token !== "function";
    try {
      if (isReady) return open(this.#url, token);
    } catch (thrown) {
      return new LateTransport(own, () => Promise.reject(thrown));
    }
    return new LateTransport(own, async () => open(await valueOf(this.#url), await valueOf(token)));
  }
  #report(error) {
    this.#options.onError?.(error);
  }
};
var LateTransport = class {
  #transport;
  #isClosed = false;
  #events;
  constructor(events, open) {
    this.#events = events;
    void this.#start(open);
  }
  send(message) {
    this.#transport?.send(message);
  }
  close(code, reason) {
    if (this.#transport) return this.#transport.close(code, reason);
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#events.closed(code ?? 1e3, reason ?? "");
  }
  async #start(open) {
    try {
      const transport = await open();
      this.#transport = transport;
      if (this.#isClosed) transport.close();
    } catch (thrown) {
      this.close(1006, `the address or the token cannot be obtained: ${thrownText(thrown)}`);
    }
  }
};
var dialStream = (url, events, { protocols }) => {
  const socket = new BrowserSocket(url, events, protocols);
  return {
    send: (message) => socket.send(message),
    close: (code = 1e3, reason = "") => socket.close(code, reason)
  };
};
function syncOf({ items, timestamp }, missed) {
  return {
    type: "sync",
    items: [
      ...items.map.values()
    ],
    timestamp,
    missed
  };
}
function checkToken(token, tokenIn) {
  if (token === void 0) return;
  if (typeof token !== "string" || token === "") throw invalid("The token must be a string");
  if (tokenIn === "query" || /^[\w!#$%&'*+.^`|~-]+$/.test(token)) return;
  const allowed = "letters, digits and !#$%&'*+-.^_`|~";
  throw invalid(`A token that is sent as a subprotocol has only ${allowed}; or set tokenIn: "query"`);
}
function withToken(url, token) {
  const address = new URL(url);
  address.searchParams.set("token", token);
  return address.href;
}
async function valueOf(given) {
  return await (typeof given === "function" ? given() : given);
}
export {
  EngineError,
  connectStreams
};
