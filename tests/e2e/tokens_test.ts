/**
 * Created tokens on a running engine, over sockets: what they allow, and how they end.
 *
 * @module
 */
import assert from "node:assert/strict";
import {
  createToken,
  type Engine,
  listTokens,
  revokeToken,
  startEngine,
} from "../../engine/mod.ts";
import type { JsonObject } from "../../mod.ts";
import { RawWsClient } from "../fakes/raw_ws_client.ts";
import { WireClient } from "../fakes/wire_engine.ts";

interface Setup extends AsyncDisposable {
  readonly directory: string;
  readonly port: number;
  readonly engine: Engine;
  /** Connects with a token; closed at the end. */
  open(token: string): Promise<WireClient>;
  /** The status of an upgrade with a token. */
  status(path: string, token?: string): Promise<number>;
}

async function setup(settings = "  auth_token: shared-secret\n"): Promise<Setup> {
  const stack = new AsyncDisposableStack();
  const directory = await Deno.makeTempDir({ prefix: "tokens-e2e-" });
  stack.defer(() => Deno.remove(directory, { recursive: true }));
  await Deno.writeTextFile(`${directory}/config.yaml`, `engine:\n  port: 0\n${settings}`);
  const engine = await startEngine({ directory, logLevel: "error" });
  stack.defer(() => engine.stop({ drain: false }));
  const port = Number(new URL(engine.endpoints[0]!.url).port);
  const headersOf = (token: string) => ({ authorization: `Bearer ${token}` });
  return {
    directory,
    port,
    engine,
    open: async (token) => {
      return stack.use(await WireClient.connect(port, { headers: headersOf(token) }));
    },
    status: async (path, token) => {
      const headers = token === undefined ? {} : headersOf(token);
      using client = await RawWsClient.connect(port, { path, headers });
      return client.status;
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

Deno.test("a token that is created while the engine runs limits calls and registrations", async () => {
  await using it = await setup();
  const shop = await it.open("shared-secret");
  await shop.offer("orders::create", "admin::drop");
  const wanted = { name: "ci", allow: ["orders::*", "engine::functions::list"] };
  const { token } = await createToken(it.directory, wanted);

  const guest = await it.open(token);
  await guest.send({ type: "invokefunction", invocation_id: "a", function_id: "orders::create" });
  await shop.run({ result: 7 });
  assert.deepEqual((await guest.receive()).result, 7);
  const error = await guest.failure("admin::drop", {});
  assert.deepEqual([error.code, error.message], [
    "FORBIDDEN",
    "function 'admin::drop' not allowed (add to rbac.expose_functions)",
  ]);
  await guest.send({ type: "registerfunction", id: "admin::mine" });
  assert.equal((await guest.receive()).type, "registrationrejected");
  await guest.offer("orders::mine");
  const { functions } = await guest.value<JsonObject>("engine::functions::list", {});
  const ids = (functions as JsonObject[]).map(({ function_id }) => function_id);
  assert.deepEqual(ids, ["orders::create", "orders::mine"]);
});

Deno.test("connections of a revoked token end with AUTH_ERROR and 1008, also telemetry", async () => {
  await using it = await setup();
  const { token } = await createToken(it.directory, { name: "ci" });
  const guest = await it.open(token);
  const shared = await it.open("shared-secret");
  const headers = { authorization: `Bearer ${token}` };
  using telemetry = await RawWsClient.connect(it.port, { path: "/otel", headers });
  assert.equal(telemetry.status, 101);
  await guest.offer("f");

  await revokeToken(it.directory, "ci");

  assert.equal(await it.status("/", token), 401);
  assert.deepEqual(await guest.receive(), {
    type: "error",
    error: { code: "AUTH_ERROR", message: "Token ci was revoked" },
  });
  assert.deepEqual(await guest.closeFrame(), { code: 1008, reason: "Token ci was revoked" });
  assert.equal((await telemetry.next())?.opcode, 8);
  assert.equal((await shared.failure("f", {})).code, "function_not_found");
  assert.equal((await listTokens(it.directory))[0]!.name, "ci");
});

Deno.test("a token that expires ends its connections, and is refused from then on", async () => {
  await using it = await setup();
  const { token } = await createToken(it.directory, { name: "ci", expires_ms: 86_400_000 });
  const guest = await it.open(token);
  const path = `${it.directory}/.engine/tokens.json`;
  const file = JSON.parse(await Deno.readTextFile(path));

  file.tokens[0].expires_at_ms = Date.now(); // As if a day had passed.
  await Deno.writeTextFile(path, JSON.stringify(file));

  const { error } = await guest.receive();
  assert.deepEqual(error, { code: "AUTH_ERROR", message: "Token ci has expired" });
  assert.equal((await guest.closeFrame()).code, 1008);
  assert.equal(await it.status("/", token), 401);
});

Deno.test("a port without a token of its own obeys created ones, and asks for none", async () => {
  await using it = await setup("");
  const { token } = await createToken(it.directory, { name: "ci", allow: ["none"] });

  const guest = await it.open(token);

  assert.equal((await guest.failure("state::get", {})).code, "FORBIDDEN");
  assert.equal(await it.status("/"), 101);
  assert.equal(await it.status("/", `${token.slice(0, -2)}xx`), 401);
});

Deno.test("tokens open pages unless they allow some functions only", async () => {
  await using it = await setup();
  const all = await createToken(it.directory, { name: "all" });
  const some = await createToken(it.directory, { name: "some", allow: ["orders::*"] });
  const status = async (token: string): Promise<number> => {
    const headers = { authorization: `Bearer ${token}` };
    const response = await fetch(`http://127.0.0.1:${it.port}/metrics`, { headers });
    await response.body?.cancel();
    return response.status;
  };

  assert.deepEqual([await status(all.token), await status(some.token)], [200, 403]);
});
