/**
 * HTTP while the engine stops: what runs finishes, everything else gets 503.
 *
 * @module
 */
import assert from "node:assert/strict";
import { EngineProcess } from "../fakes/engine_process.ts";
import { until } from "../fakes/until.ts";

const HTTP = "  - name: engine-http\n    config: { port: 0 }\n";

/** The port of `engine-http`, as the engine reports it. */
async function httpPort(engine: EngineProcess): Promise<number> {
  await using worker = engine.connect("asks");
  const info = await worker.trigger<object, { endpoints: { name: string; url: string }[] }>({
    function_id: "engine::supervisor::info",
    payload: {},
  });
  return Number(new URL(info.endpoints.find(({ name }) => name === "http")!.url).port);
}

Deno.test("a stopping engine finishes requests, bodies that still arrive included", async () => {
  await using engine = await EngineProcess.start(HTTP);
  await using worker = engine.connect("shop");
  const finish = Promise.withResolvers<void>();
  const bodies: unknown[] = [];
  worker.registerFunction("slow", async ({ body }: { body: unknown }) => {
    bodies.push(body);
    await finish.promise;
    return { body: "done" };
  });
  for (const http_method of ["GET", "POST"]) {
    const config = { api_path: "/slow", http_method };
    worker.registerTrigger({ type: "http", function_id: "slow", config });
  }
  worker.registerFunction("ready", () => ({ body: "ready" }));
  const ready = { api_path: "/ready", http_method: "GET" };
  worker.registerTrigger({ type: "http", function_id: "ready", config: ready });
  const port = await httpPort(engine);
  const url = `http://127.0.0.1:${port}/slow`;
  // Triggers are registered in their order.
  await until(async () => {
    const { status, body } = await fetch(`http://127.0.0.1:${port}/ready`);
    await body?.cancel();
    return status === 200;
  });
  const running = fetch(url);
  await until(() => bodies.length === 1);
  using arriving = await Deno.connect({ hostname: "127.0.0.1", port });
  const head = "POST /slow HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";
  const bytes = new Uint8Array(10_000);
  const read = async () =>
    new TextDecoder().decode(bytes.subarray(0, (await arriving.read(bytes))!));
  await arriving.write(
    new TextEncoder().encode(`${head}expect: 100-continue\r\ncontent-length: 5\r\n\r\n`),
  );
  assert.match(await read(), /^HTTP\/1\.1 100 /); // It was accepted before the signal.
  await arriving.write(new TextEncoder().encode('"a'));

  const ended = engine.kill("SIGTERM");
  const refused = await until503(url);
  await arriving.write(new TextEncoder().encode('bc"'));
  await until(() => bodies.length === 2);
  finish.resolve();

  assert.equal(refused.headers.get("retry-after"), "1");
  assert.equal(refused.headers.get("connection"), "close");
  assert.equal((await refused.json()).error.code, "invocation_stopped");
  assert.equal(await (await running).json(), "done");
  assert.match(await read(), /^HTTP\/1\.1 200 .*connection: close.*"done"$/s);
  assert.deepEqual(bodies, [null, "abc"]);
  assert.equal((await ended).code, 0);
});

/** The first response with 503; requests before the signal was handled are dropped. */
async function until503(url: string): Promise<Response> {
  let found: Response | undefined;
  await until(async () => {
    const response = await fetch(`${url}/else`);
    if (response.status === 503) found = response;
    else await response.body?.cancel();
    return found !== undefined;
  });
  return found!;
}
