/**
 * From a request to an open WebSocket: the checks before anything is called, the connect function,
 * and the upgrade.
 *
 * @module
 */
import type { WebSockets } from "../../../engine/ports/web_sockets.ts";
import { EngineError } from "../../../sdk/typescript/wire/errors.ts";
import type { Json, JsonObject } from "../../../sdk/typescript/wire/protocol.ts";
import type { ByteStream } from "../../kit/http/input.ts";
import type { HeaderPair, ServedRequest } from "../../kit/http/response.ts";
import { mayUse } from "../origins.ts";
import { errorReply, type Reply, replyFromValue, type Warn } from "../response.ts";
import { type ClientSocket, UNSENT_BYTES_MAX } from "./client_socket.ts";
import { type Frame, frameOfValue } from "./frame.ts";
import type { LiveRoute, SocketTarget } from "./live_routes.ts";
import { GROUP_CHARS_MAX, groupBytes, GROUPS_MAX, type Sockets } from "./sockets.ts";
import type { EventSpans } from "./spans.ts";
import type { UpgradeCall, Upgrades } from "./upgrades.ts";

/** Largest context of a connection, in characters of its JSON. */
export const CONTEXT_CHARS_MAX: number = 16 * 1024;
const NO_GROUPS: readonly string[] = [];
/** Members of what a connect function returns. */
const SAID = ["groups", "context", "data"];

/** What all routes share. */
export interface UpgradeServices {
  readonly webSockets: WebSockets;
  readonly sockets: Sockets;
  readonly spans: EventSpans;
  /** An id for a connection. */
  newId(): string;
  /** Origins that CORS lists. */
  readonly origins: readonly string[];
  /** Called with origins whose pages may not connect. */
  refused(origin: string): void;
}

/** What a connect function said. */
interface Accepted {
  readonly groups: readonly string[];
  readonly context: JsonObject | undefined;
  readonly first: Frame | undefined;
}

/** The upgrades of one trigger. */
export class SocketUpgrades implements Upgrades {
  readonly #services: UpgradeServices;
  readonly #route: () => LiveRoute;
  readonly #target: SocketTarget;
  readonly #warn: Warn;
  readonly #mayUse: (origin: string, host: string | undefined) => boolean;

  constructor(
    services: UpgradeServices,
    route: () => LiveRoute,
    target: SocketTarget,
    warn: Warn,
  ) {
    this.#services = services;
    this.#route = route;
    this.#target = target;
    this.#warn = warn;
    const origins = [...services.origins, ...target.config.allowed_origins];
    this.#mayUse = mayUse({ origins }, (origin) => services.refused(origin));
  }

  refusalOf(request: ServedRequest): Reply | undefined {
    const { headers } = request;
    const problem = this.#services.webSockets.problemOf(request);
    if (problem) {
      const reply = refusal(problem.status, "bad_message", problem.message);
      return { ...reply, headers: [...reply.headers, ...Object.entries(problem.headers ?? {})] };
    }
    const { origin } = headers;
    if (origin === undefined || this.#mayUse(origin, headers.host)) return undefined;
    const message = "A page of another origin may not connect here; list its origin in " +
      "allowed_origins of the trigger or in cors.origins of engine-http if it may";
    return refusal(403, "FORBIDDEN", message);
  }

  prepare(payload: JsonObject, request: ServedRequest): void {
    const subprotocol = this.#subprotocolOf(request);
    delete payload.body;
    payload.event = "connect";
    payload.connection_id = this.#services.newId();
    if (subprotocol !== undefined) payload.subprotocol = subprotocol;
    payload.trigger = { type: "websocket", path: payload.path! };
  }

  async open(
    request: ServedRequest,
    payload: JsonObject,
    call: UpgradeCall,
    parent: string | undefined,
  ): Promise<Reply> {
    const { sockets } = this.#services;
    if (!sockets.reserve(request.client)) return full();
    let socket: ClientSocket | undefined;
    try {
      const said = await this.#connect(payload, call, parent ?? null);
      if ("status" in said) return said;
      socket = this.#add(request, payload, said);
      if (sockets.isDraining) socket.close(1001, "the engine is stopping");
      return this.#accept(request, socket, said.first);
    } finally {
      if (!socket) sockets.cancel(request.client);
    }
  }

  async #connect(
    payload: JsonObject,
    call: UpgradeCall,
    parent: string | null,
  ): Promise<Reply | Accepted> {
    const { connect_function_id: function_id } = this.#target.config;
    const before = payload.context as JsonObject | undefined;
    if (function_id === undefined) return checkedContext(accepted(before));
    const connection_id = payload.connection_id as string;
    const subject = {
      event: "connect",
      connection_id,
      path: this.#target.config.route.api_path,
      function_id,
    } as const;
    const said = await this.#services.spans.run(subject, parent, (traceparent) => {
      return call(function_id, payload, traceparent);
    });
    return this.#readSaid(function_id, said, before);
  }

  #readSaid(
    function_id: string,
    said: Json | undefined,
    before: JsonObject | undefined,
  ): Reply | Accepted {
    if (said === undefined || said === null) return checkedContext(accepted(before));
    if (typeof said !== "object" || Array.isArray(said)) throw unclear(function_id);
    const status = said.status_code ?? said.statusCode;
    if (status !== undefined && status !== null) return this.#refusal(function_id, said);
    // Accepting what was not understood could open access that the function is there to deny.
    if (!Object.keys(said).every((key) => SAID.includes(key))) throw unclear(function_id);
    const { groups, context, data } = said;
    if (context !== undefined && context !== null && !isObject(context)) throw unclear(function_id);
    return checkedContext({
      groups: groupsIn(function_id, groups),
      context: context ? { ...before, ...context as JsonObject } : before,
      first: data === undefined || data === null ? undefined : frameOfValue(data),
    });
  }

  #refusal(function_id: string, said: JsonObject): Reply {
    const reply = replyFromValue(said, this.#warn);
    // A client would take a success for something else than a refusal.
    if (reply.status < 300) throw unclear(function_id);
    return reply;
  }

  #add(request: ServedRequest, payload: JsonObject, said: Accepted): ClientSocket {
    const { sockets } = this.#services;
    const held = sockets.hold();
    const bytes = 2 * JSON.stringify(said.context ?? null).length + groupBytes(said.groups);
    if (!held.take(bytes)) {
      throw new EngineError("overloaded", "The memory of the engine has no room; try again");
    }
    return sockets.add({
      id: payload.connection_id as string,
      route: this.#route(),
      path_params: payload.path_params as JsonObject,
      context: said.context,
      subprotocol: payload.subprotocol as string | undefined,
      client: request.client,
      held,
    }, said.groups);
  }

  #accept(request: ServedRequest, socket: ClientSocket, first: Frame | undefined): Reply {
    const { webSockets, sockets } = this.#services;
    const { max_message_bytes: maxMessageBytes } = this.#target.config;
    const upgrade = (stream: ByteStream, rest: Uint8Array): Promise<void> =>
      sockets.carry(webSockets.accept({
        request,
        stream,
        rest,
        address: request.client.name,
        protocol: socket.identity.subprotocol,
        maxMessageBytes,
        maxQueuedBytes: UNSENT_BYTES_MAX,
      }, (connection) => {
        socket.open(connection);
        if (first) socket.sendOrClose(first);
        return socket;
      }));
    const lost = (): void => socket.closed(1006, "connection lost");
    return { status: 101, headers: [], body: null, upgrade, lost };
  }

  /** The first of the route's own that the client offers. */
  #subprotocolOf({ headers }: ServedRequest): string | undefined {
    const { subprotocols } = this.#target.config;
    if (subprotocols.length === 0) return undefined;
    const offered = (headers["sec-websocket-protocol"] ?? "").split(",").map((one) => one.trim());
    return subprotocols.find((name) => offered.includes(name));
  }
}

function accepted(context: JsonObject | undefined): Accepted {
  return { groups: NO_GROUPS, context, first: undefined };
}

/** @throws {EngineError} `invocation_failed` */
function checkedContext(said: Accepted): Accepted {
  const chars = said.context === undefined ? 0 : JSON.stringify(said.context).length;
  if (chars <= CONTEXT_CHARS_MAX) return said;
  const message = `The context of a WebSocket has ${chars} characters of JSON; at most ` +
    `${CONTEXT_CHARS_MAX} are kept`;
  throw new EngineError("invocation_failed", message);
}

/** @throws {EngineError} `invocation_failed` */
function groupsIn(function_id: string, groups: Json | undefined): readonly string[] {
  if (groups === undefined || groups === null) return NO_GROUPS;
  const isFit = Array.isArray(groups) && groups.length <= GROUPS_MAX &&
    groups.every((group) => typeof group === "string" && isGroup(group));
  if (isFit) return [...new Set(groups as string[])];
  const message = `groups of what ${function_id} returned must be at most ${GROUPS_MAX} names of ` +
    `1 to ${GROUP_CHARS_MAX} characters`;
  throw new EngineError("invocation_failed", message);
}

function isGroup(name: string): boolean {
  return name.length > 0 && name.length <= GROUP_CHARS_MAX;
}

function isObject(value: Json): value is JsonObject {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}

function unclear(function_id: string): EngineError {
  const message = `${function_id} must return nothing, an object of ${SAID.join(", ")}, or a ` +
    "status_code of 300 or more";
  return new EngineError("invocation_failed", message);
}

function refusal(status: number, code: string, message: string): Reply {
  return errorReply(status, code, message, crypto.randomUUID());
}

function full(): Reply {
  const message = "Too many WebSockets are open, in all or of this client; try again later";
  const again: HeaderPair = ["retry-after", "1"];
  const reply = refusal(503, "overloaded", message);
  return { ...reply, headers: [...reply.headers, again] };
}
