import assert from "node:assert/strict";
import type { Json, JsonObject } from "../../../sdk/typescript/wire/protocol.ts";
import { fakeSockets } from "../../../tests/fakes/fake_sockets.ts";
import { UNSENT_BYTES_MAX } from "./client_socket.ts";
import { PAGE_MAX, provideFunctions, SocketFunctions } from "./functions.ts";

function setup(max = 100) {
  const it = fakeSockets({}, { max });
  return { ...it, functions: new SocketFunctions(it.sockets, it.routes) };
}

Deno.test("websocket::send to one client that is behind is refused, and nothing is closed", () => {
  const it = setup();
  const { connection } = it.open();
  connection.queuedBytes = UNSENT_BYTES_MAX;

  assert.throws(() => it.functions.send({ connection_id: "c1", data: "a" }), (error: unknown) => {
    const { code, retryable, details } = error as {
      code: string;
      retryable: boolean;
      details: JsonObject;
    };
    assert.deepEqual([code, retryable], ["overloaded", true]);
    assert.deepEqual(details, { connection_id: "c1", unsent_bytes: UNSENT_BYTES_MAX });
    return true;
  });
  assert.equal(connection.closing, undefined);
});

Deno.test("websocket::send leaves those out that the caller excepts", () => {
  const it = setup();
  const all = [it.open(["g"]), it.open(["g"]), it.open(["g"])];

  const except = (given: Json) => it.functions.send({ group: "g", data: "a", except: given });
  assert.deepEqual(except("c2"), { reached: 2, closed: 0 });
  assert.deepEqual(except(["c1", "c2", "unknown"]), { reached: 1, closed: 0 });
  assert.deepEqual(all.map(({ connection }) => connection.takeTexts().length), [1, 0, 2]);
});

Deno.test("websocket::close ends a group, and websocket::send then reaches none of it", () => {
  const it = setup();
  const all = [it.open(["g"]), it.open(["g"]), it.open()];

  assert.deepEqual(it.functions.close({ group: "g" }), { closed: 2 });
  assert.deepEqual(all.map(({ connection }) => connection.closing), [
    { code: 1000, reason: "" },
    { code: 1000, reason: "" },
    undefined,
  ]);
  assert.deepEqual(it.functions.send({ group: "g", data: "a" }), { reached: 0, closed: 0 });
  assert.deepEqual(it.functions.send({ api_path: "/", data: "a" }), { reached: 1, closed: 0 });
});

Deno.test("websocket::connections pages through a group by age, whatever leaves meanwhile", () => {
  const it = setup(2_000);
  const all = Array.from({ length: 1_200 }, (_, i) => it.open(["g"], `192.0.2.${i % 200}`));
  const page = (cursor?: Json) =>
    it.functions.list({ group: "g", limit: PAGE_MAX, ...cursor !== undefined && { cursor } }) as {
      connections: { connection_id: string }[];
      next_cursor?: string;
      total: number;
    };

  const first = page();
  all[0]!.socket.close(1000, "");
  all[1_100]!.socket.close(1000, "");
  const second = page(first.next_cursor);

  assert.deepEqual([first.connections.length, second.connections.length], [1_000, 199]);
  assert.equal(first.total, 1_200);
  assert.equal(second.connections[0]!.connection_id, "c1001");
  assert.equal(second.next_cursor, undefined);
});

Deno.test("Every function has a description and a schema of its payload", () => {
  const registered: Record<string, { description?: string; request_format?: Json }> = {};
  const worker = {
    registerFunction: (id: string, _run: unknown, options: typeof registered[string]) => {
      registered[id] = options;
    },
  };
  const it = setup();

  provideFunctions(worker as never, it.functions);

  const names = ["close", "connections", "join", "leave", "routes", "send"];
  assert.deepEqual(Object.keys(registered).sort(), names.map((name) => `websocket::${name}`));
  for (const { description, request_format } of Object.values(registered)) {
    assert.ok(description);
    assert.equal((request_format as JsonObject).type, "object");
  }
});
