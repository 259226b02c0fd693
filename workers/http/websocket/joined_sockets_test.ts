import assert from "node:assert/strict";
import { EngineError } from "../../../sdk/typescript/wire/errors.ts";
import type { Json, JsonObject } from "../../../sdk/typescript/wire/protocol.ts";
import { fakeSockets } from "../../../tests/fakes/fake_sockets.ts";
import { SocketFunctions } from "./functions.ts";
import { connectionId, JoinedSockets } from "./joined_sockets.ts";

type Run = (payload: Json, metadata: Json, context: JsonObject) => Json | Promise<Json>;
const LIVES = ["a".repeat(16), "b".repeat(16), "c".repeat(16)];

/** Engines that call each other at once; the life of a caller is its connection's id. */
function setup(lives = LIVES) {
  const functions = new Map<string, Run>();
  const gone = new Set<string>();
  return lives.map((life) => {
    const it = fakeSockets({}, { max: 100 });
    const view = (other: string) =>
      ({ life: other, name: other[0]!, link: other === life ? null : {} }) as never;
    const worker = {
      registerFunction(id: string, run: Run, { namespace }: { namespace: string }) {
        functions.set(`${namespace} ${id}`, run);
      },
      async trigger({ function_id, namespace, payload }: Record<string, Json>) {
        const run = functions.get(`${namespace} ${function_id}`);
        if (!run || gone.has(namespace as string)) {
          throw new EngineError("function_not_found", "Not there");
        }
        return await run(payload!, null, { caller: life, function_id: function_id! });
      },
    };
    const joined = new JoinedSockets({
      worker: worker as never,
      own: new SocketFunctions(it.sockets, it.routes),
      engines: { life, list: () => lives.map(view) },
      directory: { worker: (id: string) => lives.includes(id) ? { engine: id } : {} } as never,
    });
    joined.provide();
    const die = () => gone.add(`engine@${life}`);
    return { ...it, life, joined, functions, die };
  });
}

Deno.test("a message to a group reaches its members at every engine", async () => {
  const engines = setup();
  const all = engines.map(({ open }) => open(["g"]));
  const [a] = engines;

  for (const whom of [{ group: "g" }, { group: "g", connection_id: null }]) {
    const said = await a!.joined.send({ ...whom, data: "hi" });

    assert.deepEqual(said, { reached: 3, closed: 0 });
    assert.deepEqual(all.map(({ connection }) => connection.takeTexts()), [["hi"], ["hi"], ["hi"]]);
  }
  engines[2]!.die();
  assert.deepEqual(await a!.joined.close({ group: "g" }), { closed: 2 });
});

Deno.test("a call that does not fit is refused before another engine hears of it", () => {
  const [a, b] = setup();
  const { connection } = b!.open(["g"]);

  assert.throws(() => a!.joined.send({ group: "g" }), { code: "INVALID_ARGUMENTS" });
  assert.throws(() => a!.joined.send({ data: 1 }), { code: "INVALID_ARGUMENTS" });
  assert.deepEqual(connection.takeTexts(), []);
});

Deno.test("what concerns one connection is done at its engine", async () => {
  const [a, b] = setup();
  const id = connectionId({ life: b!.life });
  const { connection } = b!.open(["g"], "192.0.2.1", id);

  assert.deepEqual(await a!.joined.send({ connection_id: id, data: "hi" }), {
    reached: 1,
    closed: 0,
  });
  assert.deepEqual(connection.takeTexts(), ["hi"]);
  assert.deepEqual(await a!.joined.join({ connection_id: id, group: "h" }), {
    joined: true,
    groups: ["g", "h"],
  });
  assert.deepEqual(await a!.joined.leave({ connection_id: id, group: "g" }), {
    left: true,
    groups: ["h"],
  });
  const { connections } = await a!.joined.list({ connection_id: id }) as Listed;
  assert.deepEqual(connections.map((one) => one.connection_id), [id]);
  assert.deepEqual(await a!.joined.close({ connection_id: id }), { closed: 1 });
  await assert.rejects(async () => await a!.joined.send({ connection_id: id, data: 1 }), {
    code: "connection_not_found",
  });
});

Deno.test("a connection of an engine that is gone, or of no engine, is not open", async () => {
  const [a, b] = setup();
  b!.die();

  for (const connection_id of [connectionId({ life: b!.life }), crypto.randomUUID()]) {
    await assert.rejects(async () => await a!.joined.send({ connection_id, data: 1 }), {
      code: "connection_not_found",
      details: { connection_id },
    });
  }
});

type Listed = {
  connections: JsonObject[];
  total: number;
  next_cursor?: string;
};

Deno.test("pages list the connections of all engines, the oldest first, each once", async () => {
  const engines = setup();
  const ids: string[] = [];
  for (let i = 0; i < 30; i++) {
    const engine = engines[i * 7 % 3]!;
    const id = connectionId({ life: engine.life });
    for (const { clock } of engines) clock.tick(1);
    engine.open(["g"], "192.0.2.1", id);
    ids.push(id);
  }
  const seen: string[] = [];
  let cursor: string | undefined;
  do {
    const page = await engines[1]!.joined.list({ group: "g", limit: 4, ...cursor && { cursor } });
    const { connections, total, next_cursor } = page as Listed;
    assert.equal(total, 30);
    seen.push(...connections.map((one) => one.connection_id as string));
    cursor = next_cursor;
  } while (cursor !== undefined);

  assert.deepEqual(seen, ids);
});

Deno.test("routes are those of all engines, with all their connections", async () => {
  const engines = setup();
  engines.forEach((engine) => engine.open());

  const { routes, connections } = await engines[0]!.joined.routes() as Listed & {
    routes: JsonObject[];
  };

  assert.equal(connections, 3);
  assert.deepEqual(routes, [{ api_path: "/", function_id: "f", connections: 3 }]);
});

Deno.test("only engines may ask for the part of an engine", () => {
  const [a] = setup();
  const run = a!.functions.get(`engine@${a!.life} websocket::send`)!;
  const context = { caller: "a worker", function_id: "websocket::send" };

  assert.throws(() => run({ group: "g", data: 1 }, null, context), { code: "FORBIDDEN" });
});
