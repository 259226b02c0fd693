/**
 * Functions whose implementation is a URL, end to end: registered by both SDKs, called by the
 * command line and by HTTP, allowed and forbidden by config.yaml while the engine runs.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { EngineError, JsonObject } from "../../mod.ts";
import { registerWorker } from "../../mod.ts";
import { EngineProcess } from "../fakes/engine_process.ts";
import { findPython, PYTHON_ENV } from "../fakes/programs.ts";
import { until } from "../fakes/until.ts";

/** A service on this machine that knows nothing of the engine. */
function service() {
  const seen: JsonObject[] = [];
  const server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen() {} }, async (request) => {
    const payload = await request.json();
    seen.push({ payload, tenant: request.headers.get("x-tenant") });
    return Response.json({ cents: payload?.sku === "A1" ? 1_299 : 0 });
  });
  const url = `http://127.0.0.1:${server.addr.port}/quote`;
  return { seen, url, [Symbol.asyncDispose]: () => server.shutdown() };
}

const allowing = (hosts: string): string =>
  `  http_functions: { allow: [${hosts}], allow_private: true }\n`;

Deno.test("a function with a URL is listed, called and forbidden as the configuration says", async () => {
  await using quotes = service();
  const host = `"${new URL(quotes.url).origin}"`;
  await using engine = await EngineProcess.start("", allowing(host));
  const errors: EngineError[] = [];
  await using worker = registerWorker(engine.url, {
    workerName: "quotes",
    onError: (error) => void errors.push(error),
  });
  const options = { description: "Returns a quote" };
  const headers = { "X-Tenant": "a" };
  worker.registerFunction("web::quote", { url: `${quotes.url}?key=secret`, headers }, options);
  worker.registerFunction("web::refused", { url: "https://api.example.com/" });
  await until(() => errors.length > 0);

  assert.match(errors[0]!.message, /web::refused is refused: .* add "api\.example\.com"/);
  const called = await engine.command("trigger", "web::quote", "sku=A1");
  assert.deepEqual(JSON.parse(called.stdout), { cents: 1_299 }, called.stderr);
  assert.deepEqual(quotes.seen, [{ payload: { sku: "A1" }, tenant: "a" }]);
  const { stdout: list } = await engine.command("functions", "web");
  assert.match(list, /web::quote {2}quotes {2}\(http:\/\/127\.0\.0\.1:\d+\) Returns a quote/);
  const { stdout: help } = await engine.command("trigger", "web::quote", "--help");
  assert.match(help, /Served by: POST http:\/\/127\.0\.0\.1:\d+\/quote\?…/);
  assert.ok(!`${list}${help}`.includes("secret"));

  const config = await Deno.readTextFile(`${engine.directory}/config.yaml`);
  await engine.write("config.yaml", config.replace(allowing(host), allowing("api.example.com")));
  await until(async () => {
    const { stderr } = await engine.command("trigger", "web::quote", "sku=A1");
    return stderr.includes("engine.http_functions.allow");
  }, () => engine.stderr);
  await worker.shutdown();
  await until(async () => !(await engine.command("functions", "web")).stdout.includes("web::"));
});

Deno.test("secrets of URLs may be in .env, as of the last registration", async () => {
  const tokens: (string | null)[] = [];
  await using server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen() {} }, (request) => {
    tokens.push(request.headers.get("authorization"));
    return Response.json({});
  });
  const url = `http://127.0.0.1:${server.addr.port}/`;
  const settings = allowing(`"${new URL(url).origin}"`).replace("}", ", auth_env: [QUOTES_KEY] }");
  await using engine = await EngineProcess.start("", settings);
  const errors: string[] = [];
  await using worker = registerWorker(engine.url, {
    onError: ({ message }) => errors.push(message),
  });
  const register = () =>
    worker.registerFunction("web::quote", {
      url,
      auth: { type: "bearer", token_key: "QUOTES_KEY" },
    });

  register();
  await until(() => errors.length > 0);
  assert.match(errors[0]!, /QUOTES_KEY, which is not set for the engine nor in \.env beside/);
  for (const token of ["first", "second"]) {
    await engine.write(".env", `QUOTES_KEY=${token}\n`);
    const registered = register();
    await worker.trigger({ function_id: "web::quote" });
    registered.unregister();
  }
  assert.deepEqual(tokens, ["Bearer first", "Bearer second"]);
});

const ignore = !await findPython("tests/e2e/served_functions_test.ts");

const WORKER = `
import os, sys, threading
from engine_sdk import InitOptions, register_worker

worker = register_worker(options=InitOptions(worker_name="python-quotes"))
worker.register_function("py::quote", {"url": os.environ["QUOTES"], "headers": {"X-Tenant": "b"}})
worker.trigger({"function_id": "py::quote", "payload": {"sku": "A1"}})
print("ready", flush=True)
threading.Event().wait(300)
`;

Deno.test({ ignore, name: "Python: a function with a URL" }, async () => {
  await using quotes = service();
  await using engine = await EngineProcess.start("", allowing(`"${new URL(quotes.url).origin}"`));
  const child = new Deno.Command("python3", {
    args: ["-c", WORKER],
    env: { ...PYTHON_ENV, ENGINE_URL: engine.url, QUOTES: quotes.url },
    stdout: "null",
    stderr: "inherit",
  }).spawn();
  await using caller = engine.connect();

  await until(async () => {
    const request = { function_id: "py::quote", payload: { sku: "A1" } };
    return (await caller.trigger<JsonObject, JsonObject>(request)).cents === 1_299;
  }, () => engine.stderr);

  assert.deepEqual(quotes.seen[0], { payload: { sku: "A1" }, tenant: "b" });
  child.kill("SIGTERM");
  await child.status;
});
