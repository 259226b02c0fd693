/**
 * Worker listeners with access rules on a running engine, over sockets: who gets in, what a guest
 * may call, register and see.
 *
 * @module
 */
import assert from "node:assert/strict";
import { createToken, type Engine, revokeToken, startEngine } from "../../engine/mod.ts";
import { EngineError, type Json, type JsonObject, registerWorker, type Worker } from "../../mod.ts";
import { Certificates, findOpenssl } from "../fakes/certificates.ts";
import { RawWsClient } from "../fakes/raw_ws_client.ts";
import { until } from "../fakes/until.ts";
import { WireClient } from "../fakes/wire_engine.ts";

const LISTENERS = `
  listeners:
    - name: partners
      port: 0
      rbac:
        auth_function_id: auth::partners
        expose_functions: ['match("orders::*")', { metadata: { public: true } }]
        on_function_registration_function_id: auth::register
    - name: hasty
      port: 0
      rbac: { auth_function_id: auth::hang, auth_timeout_ms: 100 }
    - name: stuck
      port: 0
      rbac: { auth_function_id: auth::hang, auth_timeout_ms: 60000 }
    - name: gated
      port: 0
      middleware_function_id: gate::check
    - name: tokens
      port: 0
      tokens: true
`;

interface Setup extends AsyncDisposable {
  readonly directory: string;
  readonly engine: Engine;
  /** On the default listener. */
  readonly shop: Worker;
  /** Payloads of the auth function. */
  readonly asked: JsonObject[];
  port(listener: string): number;
  open(listener: string, path?: string): Promise<WireClient>;
  /** The frames and the close code of a connection that is refused. */
  refused(path: string, listener?: string): Promise<unknown[]>;
}

async function setup(settings = LISTENERS): Promise<Setup> {
  const stack = new AsyncDisposableStack();
  const directory = await Deno.makeTempDir({ prefix: "listeners-e2e-" });
  stack.defer(() => Deno.remove(directory, { recursive: true }));
  await Deno.writeTextFile(`${directory}/config.yaml`, `engine:\n  port: 0\n${settings}`);
  const engine = await startEngine({ directory, logLevel: "error" });
  stack.defer(() => engine.stop({ drain: false }));
  const urlOf = (name: string) => engine.endpoints.find((each) => each.name === name)!.url;
  const port = (name: string) => Number(new URL(urlOf(`workers:${name}`)).port);
  const shop = registerWorker(urlOf("workers"), { workerName: "shop" });
  stack.defer(() => shop.shutdown());
  const asked: JsonObject[] = [];
  offer(shop, asked);
  await until(async () => {
    const list = { function_id: "engine::functions::list", payload: { prefix: "gate::" } };
    const { functions } = await shop.trigger<Json, { functions: Json[] }>(list);
    return functions.length === 1;
  }, "the functions are there");
  return {
    directory,
    engine,
    shop,
    asked,
    port,
    open: async (listener, path = "/") => {
      return stack.use(await WireClient.connect(port(listener), { path }));
    },
    refused: async (path, listener = "partners") => {
      using raw = await RawWsClient.connect(port(listener), { path });
      assert.equal(raw.status, 101);
      await raw.text('{"type":"registerfunction","id":"early"}');
      const error = JSON.parse(await raw.nextText() ?? "null").error;
      const { opcode, payload } = (await raw.next())!;
      return [error.code, error.message, opcode, payload[0]! << 8 | payload[1]!];
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

function offer(shop: Worker, asked: JsonObject[]): void {
  shop.registerFunction("orders::create", ({ n }: { n: number }) => n + 1);
  shop.registerFunction("prices::list", () => [1], { metadata: { public: true } });
  shop.registerFunction("admin::drop", () => "dropped");
  shop.registerFunction("auth::partners", async (request: JsonObject) => {
    asked.push(request);
    const [as] = (request.query_params as Record<string, string[]>).as ?? [];
    if (as === "throw") throw new EngineError("no_key", "API key expired");
    if (as === "nothing") return "welcome";
    if (as === "slow") await new Promise((done) => setTimeout(done, 50));
    return {
      allowed_functions: ['match("engine::functions::*")'],
      forbidden_functions: ["orders::cancel"],
      context: { as: as ?? "" },
      function_registration_prefix: "acme",
    };
  });
  shop.registerFunction("auth::hang", async (_request: Json, _metadata, context) => {
    await new Promise((done) => context.signal.addEventListener("abort", done));
  });
  shop.registerFunction("auth::register", ({ function_id }: { function_id: string }) => {
    return function_id.startsWith("bad::") ? false : {};
  });
  shop.registerFunction("gate::check", (call: JsonObject) => ({ gated: call }));
}

Deno.test("a guest is authorised once, and calls, registers and sees what the rules allow", async () => {
  await using it = await setup();
  const guest = await it.open("partners", "/?as=slow&x=1&x=2");

  assert.equal(it.asked.length, 1);
  const { headers, query_params, ip_address } = it.asked[0]!;
  assert.deepEqual([query_params, ip_address], [{ as: ["slow"], x: ["1", "2"] }, "127.0.0.1"]);
  assert.equal((headers as JsonObject).upgrade, "websocket");
  assert.equal(await guest.value("orders::create", { n: 1 }), 2);
  assert.deepEqual(await guest.value("prices::list"), [1]);
  assert.equal(
    (await guest.failure("admin::drop")).message,
    "function 'admin::drop' not allowed (add to rbac.expose_functions)",
  );
  assert.equal(
    (await guest.failure("orders::cancel")).message,
    "function 'orders::cancel' not allowed (remove from rbac.forbidden_functions)",
  );
  await guest.send({ type: "registerfunction", id: "bad::one" });
  assert.equal((await guest.receive()).type, "registrationrejected");
  await guest.offer("x::y");

  const list = { function_id: "engine::functions::list", payload: {} };
  const all = await it.shop.trigger<Json, { functions: JsonObject[] }>(list);
  assert.ok(all.functions.some(({ function_id }) => function_id === "acme::x::y"));
  const seen = await guest.value<{ functions: JsonObject[] }>("engine::functions::list", {});
  assert.deepEqual(seen.functions.map(({ function_id }) => function_id), [
    "orders::create",
    "prices::list",
  ]);
  const answer = it.shop.trigger<Json, Json>({ function_id: "acme::x::y", payload: { a: 1 } });
  const call = await guest.run({ result: "mine" });
  assert.deepEqual([call.function_id, call.data], ["x::y", { a: 1 }]);
  assert.equal(await answer, "mine");
  assert.equal(it.asked.length, 1);
});

Deno.test("frames that come before the grant are handled behind it, in order", async () => {
  await using it = await setup();
  using raw = await RawWsClient.connect(it.port("partners"), { path: "/?as=slow" });
  await raw.text('{"type":"registerfunction","id":"x::early"}');
  await raw.text(
    '{"type":"invokefunction","invocation_id":"i","function_id":"orders::create",' +
      '"data":{"n":4}}',
  );

  assert.equal(JSON.parse(await raw.nextText() ?? "").type, "workerregistered");
  const result = JSON.parse(await raw.nextText() ?? "");
  assert.deepEqual([result.invocation_id, result.result], ["i", 5]);
  const info = {
    function_id: "engine::functions::info",
    payload: { function_id: "acme::x::early" },
  };
  assert.ok(await it.shop.trigger<Json, Json>(info));
});

Deno.test("an auth function that throws, hangs or grants nothing refuses, with a close", async () => {
  await using it = await setup();

  assert.deepEqual(await it.refused("/?as=throw"), [
    "AUTH_ERROR",
    "The connection is not authorised: API key expired",
    8,
    1008,
  ]);
  assert.deepEqual(await it.refused("/", "hasty"), [
    "AUTH_ERROR",
    "The connection was not authorised in time; try again later",
    8,
    1008,
  ]);
  assert.deepEqual(await it.refused("/?as=nothing"), [
    "AUTH_ERROR",
    "The connection could not be authorised",
    8,
    1008,
  ]);
});

Deno.test("without the worker of the auth function every connection is refused", async () => {
  await using it = await setup();
  await it.shop.shutdown();
  await until(() => it.engine.info().listeners.length === 5, "it runs");

  await until(async () => {
    const [code, message] = await it.refused("/");
    return code === "AUTH_ERROR" &&
      message === "Connections cannot be authorised now; try again later";
  }, "the engine noticed that the worker left");
});

Deno.test("middleware gets the calls of its listener, and may forward them", async () => {
  await using it = await setup();
  const guest = await it.open("gated");

  const { gated } = await guest.value<{ gated: JsonObject }>("orders::create", { n: 1 });

  assert.deepEqual(gated, {
    function_id: "orders::create",
    payload: { n: 1 },
    action: null,
    context: {},
    namespace: "default",
  });
  await guest.send({ type: "registerfunction", id: "gate::check" });
  assert.match(
    String((await guest.receive()).message),
    /a function with this id decides about access/,
  );
});

Deno.test("a listener with tokens: true lets in created tokens only, until they are revoked", async () => {
  await using it = await setup();
  const { token } = await createToken(it.directory, { name: "ci", allow: ["orders::*"] });
  using nothing = await RawWsClient.connect(it.port("tokens"));
  assert.equal(nothing.status, 401);

  const guest = await it.open("tokens", `/?token=${token}`);
  assert.equal(await guest.value("orders::create", { n: 1 }), 2);
  assert.equal((await guest.failure("admin::drop")).code, "FORBIDDEN");
  await revokeToken(it.directory, "ci");

  assert.equal(((await guest.receive()).error as JsonObject).code, "AUTH_ERROR");
  assert.equal((await guest.closeFrame()).code, 1008);
});

Deno.test("what a client sends before the grant is bounded, and the engine keeps serving", async () => {
  await using it = await setup(LISTENERS + "  memory_mb: 128\n");
  const port = it.port("stuck");
  const frame = `{"type":"ping","x":"${"x".repeat(60_000)}"}`;
  const clients: RawWsClient[] = [];
  try {
    for (let i = 0; i < 4; i++) clients.push(await RawWsClient.connect(port));
    // A write waits while the engine does not read, and ends with its connection.
    const floods = clients.map(async (client) => {
      for (let sent = 0; sent < 200; sent++) await client.text(frame);
    });
    for (const flood of floods) flood.catch(() => {}); // Their sockets are destroyed below.
    const guest = await it.open("partners");
    for (let i = 0; i < 50; i++) {
      assert.equal(await guest.value("orders::create", { n: i }), i + 1);
    }
    const health = { function_id: "engine::health::measure", payload: {} };
    const { checks } = await it.shop.trigger<Json, { checks: JsonObject[] }>(health);
    assert.deepEqual(checks.filter(({ status }) => status === "fail"), []);
  } finally {
    for (const client of clients) client.destroy();
  }
});

Deno.test("deno-serve: frames wait for the grant, and what is not granted is refused", async () => {
  await using it = await setup("  transport: deno-serve\n" + LISTENERS);
  const guest = await it.open("partners", "/?as=slow");

  assert.equal(await guest.value("orders::create", { n: 1 }), 2);
  assert.equal((await guest.failure("admin::drop")).code, "FORBIDDEN");
  const [code] = await it.refused("/?as=throw");
  assert.equal(code, "AUTH_ERROR");
});

Deno.test({
  name: "a listener has a certificate of its own, with which the default one has none",
  ignore: !await findOpenssl("tests/e2e/listeners_test.ts"),
  async fn() {
    await using made = await Certificates.make();
    const tls = `      tls: { cert: ${made.path("cert.pem")}, key: ${made.path("key.pem")} }\n`;
    await using it = await setup(LISTENERS.replace("    - name: hasty", `${tls}    - name: hasty`));
    const { url } = it.engine.info().listeners.find(({ name }) => name === "partners")!;
    assert.match(url, /^wss:/);

    using client = await RawWsClient.connect({
      port: it.port("partners"),
      ca: made.read("ca.pem"),
    });
    const { type } = JSON.parse(await client.nextText() ?? "null");
    assert.equal(type, "workerregistered");
  },
});

Deno.test("a worker on the SDK is a guest like any other, with its token and its own names", async () => {
  await using it = await setup();
  const { token } = await createToken(it.directory, {
    name: "ci",
    allow: ["orders::*", "acme::*"],
  });
  const url = `ws://127.0.0.1:${it.port("partners")}`;
  const guest = registerWorker(url, { workerName: "guest", token });
  guest.registerFunction("stock::get", ({ sku }: { sku: string }) => `one ${sku}`);
  const call = (function_id: string, payload: Json = {}) =>
    it.shop.trigger<Json, Json>({ function_id, payload });

  try {
    const stock = "acme::stock::get";
    await until(async () => await call(stock, { sku: "s" }) === "one s", "the guest is there");
    assert.equal(await guest.trigger({ function_id: "orders::create", payload: { n: 1 } }), 2);
    // Its listener exposes it, its token does not.
    const prices = guest.trigger({ function_id: "prices::list", payload: {} });
    await assert.rejects(prices, { code: "FORBIDDEN" });
  } finally {
    await guest.shutdown();
  }
});

Deno.test("a port that is taken is named with its listener", async () => {
  using taken = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = taken.addr as Deno.NetAddr;

  await assert.rejects(setup(`  listeners: [{ name: partners, port: ${port} }]\n`), {
    code: "address_in_use",
    message: `Port ${port} is taken; stop the other program or set port of listener partners in ` +
      "config.yaml",
  });
});
