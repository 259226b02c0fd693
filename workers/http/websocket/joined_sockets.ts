/**
 * The functions `websocket::*` over the engines of a cluster.
 *
 * A connection is at the engine that accepted it, and its id ends with the life of that engine:
 * what concerns one connection is passed on to its engine, what concerns a group or a route is done
 * at every engine. Each does its part by functions in a namespace of its own, which answer engines
 * only. An engine that does not answer in time counts as one without connections.
 *
 * @module
 */
import type { Directory, Engines } from "../../../engine/ports/directory.ts";
import { EngineError } from "../../../sdk/typescript/wire/errors.ts";
import type { Json, JsonObject } from "../../../sdk/typescript/wire/protocol.ts";
import type { Worker } from "../../../sdk/typescript/worker.ts";
import {
  callEngine,
  callEngines,
  otherEngines,
  registerForEngines,
  triggerAt,
} from "../../kit/engines.ts";
import {
  PAGE_CHARS_MAX,
  readList,
  type SocketFunctions,
  type SocketOperations,
  type SocketPage,
} from "./functions.ts";

/** How long the engine of a connection may take. */
const CALL_TIMEOUT_MS = 5_000;
/** What engines do for others, by the ends of the ids of its functions. */
const PASSED_ON = ["send", "close", "join", "leave", "connections", "routes"] as const;
type PassedOn = typeof PASSED_ON[number];

/** Dependencies of {@linkcode JoinedSockets}. */
export interface JoinedSocketsSetup {
  readonly worker: Pick<Worker, "registerFunction" | "trigger">;
  /** Those of this engine. */
  readonly own: SocketFunctions;
  readonly engines: Pick<Engines, "life" | "list">;
  readonly directory: Pick<Directory, "worker">;
}

/** The id of a connection of this engine. */
export function connectionId(engines: Pick<Engines, "life"> | undefined): string {
  const id = crypto.randomUUID();
  return engines ? `${id}@${engines.life}` : id;
}

/** See the module. */
export class JoinedSockets implements SocketOperations {
  readonly #setup: JoinedSocketsSetup;

  constructor(setup: JoinedSocketsSetup) {
    this.#setup = setup;
  }

  /** Answers the other engines. */
  provide(): void {
    const { worker, own, engines, directory } = this.#setup;
    const runs: Record<PassedOn, (payload: Json) => unknown> = {
      send: (payload) => own.send(payload),
      close: (payload) => own.close(payload),
      join: (payload) => own.join(payload),
      leave: (payload) => own.leave(payload),
      connections: (payload) => own.page(payload),
      routes: () => own.routes(),
    };
    for (const name of PASSED_ON) {
      const about = {
        function_id: idOf(name),
        description: "Does it with the WebSockets of this engine, for another one",
      };
      registerForEngines({ worker, directory, life: engines.life }, about, (payload) => {
        return runs[name](payload) as Json;
      });
    }
  }

  send(payload: Json): Json | Promise<Json> {
    return this.#do("send", payload, () => this.#setup.own.send(payload), ["reached", "closed"]);
  }

  close(payload: Json): Json | Promise<Json> {
    return this.#do("close", payload, () => this.#setup.own.close(payload), ["closed"]);
  }

  join(payload: Json): Json | Promise<Json> {
    return this.#passOn("join", payload) ?? this.#setup.own.join(payload);
  }

  leave(payload: Json): Json | Promise<Json> {
    return this.#passOn("leave", payload) ?? this.#setup.own.leave(payload);
  }

  list(payload: Json): Json | Promise<Json> {
    const { own, engines } = this.#setup;
    const { limit, cursor, ...whom } = readList(payload);
    if (whom.connection_id !== undefined) {
      const passed = this.#passOn("connections", payload);
      return passed ? passed.then((page) => withoutSeqs(page as JsonObject)) : own.list(payload);
    }
    const after = readCursor(cursor);
    const pageOf = (life: string): JsonObject =>
      ({ ...whom, limit, cursor: after.get(life) ?? "0" }) as JsonObject;
    const first = own.page(pageOf(engines.life)); // Says first what is wrong with the payload.
    const others = otherEngines(engines).map(async (other) => {
      const page = pageOf(other.life);
      const answer = await callEngine(this.#setup.worker, other, idOf("connections"), page);
      return [other.life, answer?.result as SocketPage | undefined] as const;
    });
    return Promise.all(others).then((pages) => {
      const answered = pages.filter((one): one is [string, SocketPage] => one[1] !== undefined);
      return merge([[engines.life, first], ...answered], limit, after);
    });
  }

  async routes(): Promise<Json> {
    const { own, worker, engines } = this.#setup;
    const others = await callEngines(worker, engines, idOf("routes"), {});
    const all = [await own.routes(), ...others.map(({ result }) => result)] as unknown as Routes[];
    const byPath = new Map<string, JsonObject & { connections: number }>();
    for (const route of all.flatMap(({ routes }) => routes)) {
      const known = byPath.get(route.api_path as string);
      if (known) known.connections += route.connections;
      else byPath.set(route.api_path as string, { ...route });
    }
    const sum = (key: "connections" | "groups"): number =>
      all.reduce((total, one) => total + one[key], 0);
    return { routes: [...byPath.values()], connections: sum("connections"), groups: sum("groups") };
  }

  /** For one connection at its engine, otherwise here and everywhere else. */
  #do(
    name: PassedOn,
    payload: Json,
    here: () => Json | Promise<Json>,
    counts: readonly string[],
  ): Json | Promise<Json> {
    const passed = this.#passOn(name, payload);
    if (passed) return passed;
    const own = here(); // Says what is wrong with the payload, before anything is done elsewhere.
    // A member that is null counts as left out.
    if (((payload as JsonObject).connection_id ?? null) !== null) return own;
    const { worker, engines } = this.#setup;
    const others = callEngines(worker, engines, idOf(name), payload);
    return Promise.all([own, others]).then(([result, answers]) => {
      const all = [result, ...answers.map((one) => one.result)] as Record<string, number>[];
      return Object.fromEntries(
        counts.map((key) => [key, all.reduce((sum, one) => sum + (one[key] ?? 0), 0)]),
      );
    });
  }

  /** Calls the engine of a connection; `undefined` when that is this one, or there is none. */
  #passOn(name: PassedOn, payload: Json): Promise<Json> | undefined {
    const { worker, engines } = this.#setup;
    const connection_id = (payload as JsonObject | null)?.connection_id;
    if (typeof connection_id !== "string") return undefined;
    const [, life] = /@([0-9a-f]{16})$/.exec(connection_id) ?? [];
    if (life === undefined || life === engines.life) return undefined;
    const call = { function_id: idOf(name), payload, timeoutMs: CALL_TIMEOUT_MS };
    return triggerAt(worker, life, call).catch((thrown) => {
      if ((thrown as EngineError).code !== "function_not_found") throw thrown;
      const message = `WebSocket ${connection_id} is not open: its engine is not there`;
      throw new EngineError("connection_not_found", message, { details: { connection_id } });
    });
  }
}

type Routes = {
  readonly routes: (JsonObject & { connections: number })[];
  readonly connections: number;
  readonly groups: number;
};

function idOf(name: PassedOn): string {
  return `websocket::${name}`;
}

function withoutSeqs({ connections, total }: JsonObject): Json {
  return { connections: connections!, total: total! };
}

/** By engine, the place of its last connection that was listed. */
function readCursor(cursor: string): Map<string, string> {
  const parts = cursor.split(",").map((part) => part.split("."));
  return new Map(parts.flatMap(([life, seq]) => seq === undefined ? [] : [[life!, seq]]));
}

/** Pages of engines as one, the oldest connections first. */
function merge(
  pages: readonly (readonly [string, SocketPage])[],
  limit: number,
  after: Map<string, string>,
): Json {
  const taken = pages.map(([life, page]) => ({ life, page, count: 0 }));
  const connections: JsonObject[] = [];
  let chars = 0;
  while (connections.length < limit) {
    // What an engine did not say yet may be older than what another one says.
    if (taken.some(({ page, count }) => page.hasMore && count === page.seqs.length)) break;
    const left = taken.filter(({ page, count }) => count < page.seqs.length);
    const openedAt = ({ page, count }: typeof taken[number]): number =>
      page.connections[count]!.opened_at_ms as number;
    const [next] = left.sort((one, other) => openedAt(one) - openedAt(other));
    if (!next) break;
    const entry = next.page.connections[next.count]!;
    chars += JSON.stringify(entry).length;
    if (chars > PAGE_CHARS_MAX && connections.length > 0) break;
    connections.push(entry);
    after.set(next.life, String(next.page.seqs[next.count++]!));
  }
  const hasMore = taken.some(({ page, count }) => page.hasMore || count < page.seqs.length);
  const total = pages.reduce((sum, [, page]) => sum + page.total, 0);
  const next_cursor = [...after].map(([life, seq]) => `${life}.${seq}`).join(",");
  return { connections, total, ...hasMore && { next_cursor } };
}
