/**
 * The functions `websocket::*`: what a program does with the connections of all routes.
 *
 * Whom a call concerns is one of three: `connection_id`, `group`, or `api_path` for all of a route.
 * A connection that is not open is an error, since its caller means that one; a group or a route
 * without connections is none, as clients come and go.
 *
 * @module
 */
import { EngineError } from "../../../sdk/typescript/wire/errors.ts";
import type { Json, JsonObject } from "../../../sdk/typescript/wire/protocol.ts";
import type { Worker } from "../../../sdk/typescript/worker.ts";
import { fit } from "../../kit/fit.ts";
import * as v from "../../kit/schema.ts";
import { ROUTE_CHARS_MAX } from "../routes.ts";
import type { ClientSocket } from "./client_socket.ts";
import { binaryFrame, type Frame, frameOfValue, isCloseCode, REASON_BYTES_MAX } from "./frame.ts";
import type { LiveRoutes } from "./live_routes.ts";
import { GROUP_CHARS_MAX, type Reached, type Sockets } from "./sockets.ts";

/** Connections of a page, at most and by default. */
export const PAGE_MAX = 1_000;
const PAGE_DEFAULT = 100;
/** A page ends before it has more characters. */
export const PAGE_CHARS_MAX: number = 4 * 1024 * 1024;
const ID_CHARS = 64;
const EXCEPT_MAX = 1_000;

/** Of one engine, or one for each engine of a cluster. */
const CURSOR = /^(\d{1,15}|([0-9a-f]{16}\.\d{1,15},?){1,256})$/;

const Id = v.text(1, ID_CHARS);
const Group = v.text(1, GROUP_CHARS_MAX);
const ONE_OF = "one of connection_id, group and api_path";
/** The fields that say whom a call concerns. */
const whom = (rule: string) => ({
  connection_id: v.described(`One connection; ${rule}`, v.opt(Id)),
  group: v.described(`All connections of this group; ${rule}`, v.opt(Group)),
  api_path: v.described(
    `All connections of this route, as its trigger spells it; ${rule}`,
    v.opt(v.text(1, ROUTE_CHARS_MAX)),
  ),
});

const Send = v.object({
  ...whom(ONE_OF),
  data: v.described(
    "The message: a string goes out as it is, anything else as JSON; either this or data_base64",
    v.optional(v.unknown()),
  ),
  data_base64: v.described("A binary message, in base64; either this or data", v.opt(v.string())),
  except: v.described(
    "Id or ids of connections of the group or route that do not receive the message. Default: none",
    v.opt(v.union([Id, v.list(Id, EXCEPT_MAX)])),
  ),
});
const Close = v.object({
  ...whom(ONE_OF),
  code: v.described(
    "Close code: 1000, 1001, 1008, 1011, 1013, or 3000 to 4999. Default: 1000",
    v.opt(v.int()),
  ),
  reason: v.described(
    `Close reason, at most ${REASON_BYTES_MAX} bytes of UTF-8. Default: empty`,
    v.opt(v.string()),
  ),
});
const Membership = v.object({
  connection_id: v.described("The connection", Id),
  group: v.described("The group, which exists while it has connections", Group),
});
const List = v.object({
  ...whom(`at most ${ONE_OF}. Default: all connections`),
  limit: v.described(
    `Connections in one answer. Default: ${PAGE_DEFAULT}`,
    v.opt(v.int(1, PAGE_MAX)),
  ),
  cursor: v.described(
    "next_cursor of the previous result. Default: from the oldest connection",
    v.opt(v.pipe(v.string(), v.regex(CURSOR, "expected a next_cursor"))),
  ),
});

/** Whom a call concerns. */
interface Whom {
  readonly connection_id?: string | undefined;
  readonly group?: string | undefined;
  readonly api_path?: string | undefined;
}

/** What each function does with its payload. */
export type SocketOperations = Pick<
  SocketFunctions,
  "send" | "close" | "join" | "leave" | "list" | "routes"
>;

/** Connections of one engine, the oldest first. */
export interface SocketPage {
  readonly connections: JsonObject[];
  /** Their places at their engine. */
  readonly seqs: number[];
  readonly total: number;
  /** Whether more follow. */
  readonly hasMore: boolean;
}

/** Registers the functions. */
export function provideFunctions(
  worker: Pick<Worker, "registerFunction">,
  it: SocketOperations,
): void {
  const provide = (
    name: string,
    description: string,
    schema: v.Schema,
    run: (payload: Json) => Json | Promise<Json>,
  ): void => {
    worker.registerFunction(`websocket::${name}`, (payload) => run(payload as Json), {
      description,
      request_format: v.jsonSchema(schema),
    });
  };
  provide("send", "Send a message to a connection, a group or a route", Send, (p) => it.send(p));
  provide("close", "Close connections", Close, (p) => it.close(p));
  provide("join", "Add a connection to a group", Membership, (p) => it.join(p));
  provide("leave", "Remove a connection from a group", Membership, (p) => it.leave(p));
  provide("connections", "List open connections, the oldest first", List, (p) => it.list(p));
  provide(
    "routes",
    "List routes with their number of connections",
    v.object({}),
    () => it.routes(),
  );
}

/** See the module. */
export class SocketFunctions {
  readonly #sockets: Sockets;
  readonly #routes: LiveRoutes;

  constructor(sockets: Sockets, routes: LiveRoutes) {
    this.#sockets = sockets;
    this.#routes = routes;
  }

  /** `websocket::send` */
  send(payload: Json): Json | Promise<Json> {
    const request = fit("websocket::send", Send, payload);
    const frame = frameOf(payload as JsonObject, request);
    const targets = this.#targetsOf("websocket::send", request);
    if (request.connection_id !== undefined) return this.#sendToOne(targets[0]!, frame);
    const except = new Set([request.except ?? []].flat());
    const left = except.size === 0
      ? targets
      : targets.filter(({ identity }) => !except.has(identity.id));
    return this.#sockets.send(left, frame) as Reached & Json;
  }

  /** `websocket::close` */
  close(payload: Json): Json | Promise<Json> {
    const request = fit("websocket::close", Close, payload);
    const { code = 1000, reason = "" } = request;
    if (!isCloseCode(code)) {
      const message = `code ${code} cannot be sent; use 1000, 1001, 1008, 1011, 1013, or ` +
        "3000 to 4999";
      throw new EngineError("INVALID_ARGUMENTS", message);
    }
    if (new TextEncoder().encode(reason).length > REASON_BYTES_MAX) {
      throw new EngineError("INVALID_ARGUMENTS", `reason has over ${REASON_BYTES_MAX} bytes`);
    }
    const targets = this.#targetsOf("websocket::close", request);
    return this.#sockets.inOrder(() => {
      const open = targets.filter(({ isOpen }) => isOpen);
      for (const socket of open) socket.refuse(code, reason);
      return { closed: open.length };
    });
  }

  /** `websocket::join` */
  join(payload: Json): Json | Promise<Json> {
    const { connection_id, group } = fit("websocket::join", Membership, payload);
    const socket = this.#sockets.get(connection_id);
    return { joined: this.#sockets.join(socket, group), groups: [...socket.groups] };
  }

  /** `websocket::leave` */
  leave(payload: Json): Json | Promise<Json> {
    const { connection_id, group } = fit("websocket::leave", Membership, payload);
    const socket = this.#sockets.get(connection_id);
    return { left: this.#sockets.leave(socket, group), groups: [...socket.groups] };
  }

  /** `websocket::connections` */
  list(payload: Json): Json | Promise<Json> {
    const { connections, seqs, total, hasMore } = this.page(payload);
    const next_cursor = hasMore ? String(seqs.at(-1)) : undefined;
    return { connections, total, ...next_cursor !== undefined && { next_cursor } };
  }

  /** Connections behind a cursor. */
  page(payload: Json): SocketPage {
    const request = readList(payload);
    const { limit, cursor } = request;
    const all = hasWhom(request)
      ? this.#targetsOf("websocket::connections", request).sort((a, b) => a.seq - b.seq)
      : [...this.#sockets.all()];
    const after = /^\d+$/.test(cursor) ? Number(cursor) : 0;
    const connections: JsonObject[] = [];
    const seqs: number[] = [];
    let chars = 0;
    let hasMore = false;
    for (const socket of all) {
      if (socket.seq <= after) continue;
      const entry = entryOf(socket);
      chars += JSON.stringify(entry).length;
      hasMore = connections.length === limit || (chars > PAGE_CHARS_MAX && seqs.length > 0);
      if (hasMore) break;
      connections.push(entry);
      seqs.push(socket.seq);
    }
    return { connections, seqs, total: all.length, hasMore };
  }

  /** `websocket::routes` */
  routes(): Json | Promise<Json> {
    const routes = [...this.#routes.all()].map(({ path, target, sockets }) => ({
      api_path: path,
      function_id: target?.function_id ?? null,
      connections: sockets.size,
    }));
    return { routes, connections: this.#sockets.size, groups: this.#sockets.groupCount };
  }

  /** To one connection: its caller can wait and try again, so nothing is closed. */
  #sendToOne(socket: ClientSocket, frame: Frame): Json | Promise<Json> {
    return this.#sockets.inOrder(() => {
      const { id } = socket.identity;
      this.#sockets.get(id); // It may have ended while others were sent to.
      if (socket.send(frame)) return { reached: 1, closed: 0 };
      const unsent_bytes = socket.unsentBytes;
      const message = `WebSocket ${id} reads too slowly: ${unsent_bytes} bytes are unsent`;
      const details = { connection_id: id, unsent_bytes };
      throw new EngineError("overloaded", message, { details });
    });
  }

  /** @throws {EngineError} `connection_not_found`, `INVALID_ARGUMENTS` */
  #targetsOf(function_id: string, whom: Whom): ClientSocket[] {
    const { connection_id, group, api_path } = whom;
    const given = [connection_id, group, api_path].filter((each) => each !== undefined);
    if (given.length !== 1) {
      const message = `${function_id} needs one of connection_id, group and api_path`;
      throw new EngineError("INVALID_ARGUMENTS", message);
    }
    if (connection_id !== undefined) return [this.#sockets.get(connection_id)];
    if (group !== undefined) return [...this.#sockets.membersOf(group)];
    const route = this.#routes.find(api_path!);
    return route ? [...route.sockets] as ClientSocket[] : [];
  }
}

/** Reads a payload of `websocket::connections`. */
export function readList(payload: Json): Whom & { limit: number; cursor: string } {
  const request = fit("websocket::connections", List, payload ?? {});
  return { ...request, limit: request.limit ?? PAGE_DEFAULT, cursor: request.cursor ?? "" };
}

function hasWhom({ connection_id, group, api_path }: Whom): boolean {
  return connection_id !== undefined || group !== undefined || api_path !== undefined;
}

/** @throws {EngineError} `INVALID_ARGUMENTS` */
function frameOf(
  payload: JsonObject,
  { data_base64 }: { data_base64?: string | undefined },
): Frame {
  const hasData = Object.hasOwn(payload, "data");
  if (hasData === (data_base64 !== undefined)) {
    const message = "websocket::send needs data, a string or any JSON value, or data_base64";
    throw new EngineError("INVALID_ARGUMENTS", message);
  }
  return data_base64 === undefined ? frameOfValue(payload.data!) : binaryFrame(data_base64);
}

function entryOf(socket: ClientSocket): JsonObject {
  const { id, route, path_params, context, subprotocol, client } = socket.identity;
  return {
    connection_id: id,
    api_path: route.path,
    path_params,
    groups: [...socket.groups],
    ...context !== undefined && { context },
    ...subprotocol !== undefined && { subprotocol },
    client: client.name,
    opened_at_ms: socket.openedAtMs,
    unsent_bytes: socket.unsentBytes,
  };
}
