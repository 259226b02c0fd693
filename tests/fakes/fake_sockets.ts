/**
 * The WebSockets of a port without a port: connections that record what is sent to them, functions
 * that are plain closures, and a clock that tests move by hand.
 *
 * @module
 */
import { createMemoryBudget } from "../../engine/platform/memory_budget.ts";
import type { MemoryBudget } from "../../engine/ports/memory.ts";
import type { EndedSpan } from "../../engine/ports/telemetry.ts";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import type { FunctionCall } from "../../workers/http/handler.ts";
import type { ClientSocket } from "../../workers/http/websocket/client_socket.ts";
import { parseSocketTrigger } from "../../workers/http/websocket/config.ts";
import { LiveRoutes, type SocketTarget } from "../../workers/http/websocket/live_routes.ts";
import { groupBytes, Sockets } from "../../workers/http/websocket/sockets.ts";
import { EventSpans } from "../../workers/http/websocket/spans.ts";
import { FakeClock, FakeTurns } from "./fake_clock.ts";
import { FakeConnection } from "./fake_connection.ts";
import { failure, type LogLine, recordingLog, settle } from "./fake_http.ts";

/** A socket and its client's end. */
export interface Joined {
  readonly socket: ClientSocket;
  readonly connection: FakeConnection;
}

/** What tests look at. */
export interface FakeSockets {
  readonly clock: FakeClock;
  readonly memory: MemoryBudget;
  readonly turns: FakeTurns;
  readonly lines: LogLine[];
  readonly calls: FunctionCall[];
  readonly spans: EndedSpan[];
  readonly routes: LiveRoutes;
  readonly sockets: Sockets;
  /** By function id; tests add to it and take away. */
  readonly functions: Record<string, (payload: JsonObject) => unknown>;
  /** Opens a connection of the route `/`, in these groups. */
  open(groups?: readonly string[], address?: string, id?: string): Joined;
  /** The trigger of a config, with the id and function `f` unless it says otherwise. */
  target(config?: JsonObject, id?: string): SocketTarget;
  /** Moves the clock, gives a turn to what waits for one, and runs what follows. */
  pass(ms: number): Promise<void>;
}

/** What is wrong with a trigger's config that is refused. */
export function problemsIn(parse: () => unknown): string[] {
  try {
    parse();
    return [];
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    return error.details!.problems as string[];
  }
}

/** `max`: connections that may be open. */
export function fakeSockets(
  config: JsonObject = {},
  { max = 100, memoryBytes = 64 * 1024 * 1024 }: { max?: number; memoryBytes?: number } = {},
): FakeSockets {
  const clock = new FakeClock();
  const memory = createMemoryBudget(memoryBytes, queueMicrotask);
  const turns = new FakeTurns();
  const lines: LogLine[] = [];
  const calls: FunctionCall[] = [];
  const spans: EndedSpan[] = [];
  const functions: FakeSockets["functions"] = {};
  const sink = {
    open: () => `00-${"a".repeat(32)}-${"b".repeat(16)}-01`,
    record: (span: EndedSpan) => void spans.push(span),
  };
  const routes = new LiveRoutes(clock);
  const sockets = new Sockets({
    clock,
    memory,
    turns,
    log: recordingLog(lines),
    spans: new EventSpans(sink, clock),
    timeoutMs: 30_000,
    max,
    async call(request): Promise<Json | undefined> {
      calls.push(request);
      const { function_id } = request;
      const run = functions[function_id];
      if (!run) throw failure("function_not_found", `Function ${function_id} not found`);
      return await run(request.payload as JsonObject) as Json | undefined;
    },
  });
  const target: FakeSockets["target"] = (more = {}, id = "t") => ({
    id,
    function_id: "f",
    namespace: undefined,
    metadata: undefined,
    config: parseSocketTrigger({ api_path: "/", ...config, ...more }),
  });
  const route = routes.add(target());
  let count = 0;
  return {
    clock,
    memory,
    turns,
    lines,
    calls,
    spans,
    routes,
    sockets,
    functions,
    target,
    open(groups = [], address = "192.0.2.1", id = `c${++count}`) {
      const client = { name: address, sockets: 1, running: 0 };
      if (!sockets.reserve(client)) throw new Error("no place");
      const held = sockets.hold();
      held.take(groupBytes(groups));
      const identity = { id, route, path_params: {}, client, held };
      const socket = sockets.add(
        { ...identity, context: undefined, subprotocol: undefined },
        groups,
      );
      const connection = new FakeConnection(id);
      socket.open(connection);
      return { socket, connection };
    },
    async pass(ms) {
      clock.tick(ms);
      turns.give();
      await settle();
    },
  };
}
