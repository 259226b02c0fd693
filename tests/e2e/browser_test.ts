/**
 * The SDK as a page gets it: the built module without a `process`, and in a real Chromium where
 * there is one.
 *
 * @module
 */
import assert from "node:assert/strict";
import { type Json, registerWorker } from "../../mod.ts";
import { SocketEngine } from "../fakes/socket_server.ts";

const SDK = new URL("../../sdk/npm/engine_sdk.js", import.meta.url);
const CHROMIUM = "/usr/bin/chromium";
const hasChromium = await Deno.stat(CHROMIUM).then(() => true, () => false);
if (!hasChromium) console.log(`left out: half of tests/e2e/browser_test.ts needs ${CHROMIUM}`);

/** What a page does; it hands what it saw to `done`. */
const PAGE = `
  const worker = registerWorker(url, { workerName: "page", token: "s3cret" });
  worker.registerFunction("page::shout", ({ text }) => text.toUpperCase());
  const answer = await worker.trigger({ function_id: "test::double", payload: { n: 21 } });
  const big = await worker.trigger({ function_id: "test::echo", payload: "ä".repeat(100_000) });
  const failure = await worker.trigger({ function_id: "no::such" }).catch((error) => error.code);
  await done({ answer, big: big.length, failure, process: typeof process });
  await new Promise((resolve) => setTimeout(resolve, 3_000));`;

const SEEN = { answer: 42, big: 100_000, failure: "function_not_found", process: "undefined" };

/** An engine with a worker that the page calls and that calls the page. */
async function setup() {
  const stack = new AsyncDisposableStack();
  const engine = stack.use(new SocketEngine({ authToken: "s3cret" }));
  const worker = stack.use(registerWorker(engine.url, { workerName: "deno", token: "s3cret" }));
  worker.registerFunction("test::double", ({ n }: { n: number }) => n * 2);
  worker.registerFunction("test::echo", (payload: Json) => payload);
  await worker.trigger({ function_id: "test::echo" });
  return { engine, worker, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

Deno.test("the built SDK needs neither process nor Deno: it uses the platform's WebSocket", async () => {
  await using test = await setup();
  const code = `
    delete globalThis.process;
    delete globalThis.Deno;
    const { registerWorker } = await import(${JSON.stringify(SDK.href)});
    const url = ${JSON.stringify(test.engine.url)};
    const done = (seen) => console.log(JSON.stringify(seen));
    ${PAGE.replace("3_000", "0")}
    console.log(worker.name);
    await worker.shutdown();`;
  const command = new Deno.Command(Deno.execPath(), {
    args: ["eval", "--no-config", code],
    stderr: "inherit",
  });

  const { stdout, success } = await command.output();

  const lines = new TextDecoder().decode(stdout).trim().split("\n");
  assert.deepEqual([JSON.parse(lines[0]!), lines[1], success], [SEEN, "page", true]);
});

Deno.test({
  name: "a page in Chromium calls functions and offers its own",
  ignore: !hasChromium,
  async fn(): Promise<void> {
    await using test = await setup();
    const seen = Promise.withResolvers<Json>();
    await using server = servePage(test.engine.url, seen.resolve);
    const profile = await Deno.makeTempDir();
    const flags = ["--headless", "--no-sandbox", "--disable-gpu", `--user-data-dir=${profile}`];
    const address = `http://127.0.0.1:${server.addr.port}/`;
    const args = [...flags, "--remote-debugging-port=0", address];
    const chromium = new Deno.Command(CHROMIUM, { args, stdout: "null", stderr: "null" }).spawn();
    chromium.status.then(({ code }) => seen.resolve(`Chromium ended with ${code}`));
    try {
      assert.deepEqual(await seen.promise, SEEN);
      const call = { function_id: "page::shout", payload: { text: "hi" } };
      assert.equal(await test.worker.trigger(call), "HI");
    } finally {
      chromium.kill("SIGKILL");
      await chromium.status;
      await Deno.remove(profile, { recursive: true }).catch(() => {}); // Its children may hold it.
    }
  },
});

/** A page that loads the SDK, runs {@linkcode PAGE} and posts what it saw. */
function servePage(engineUrl: string, seen: (value: Json) => void): Deno.HttpServer<Deno.NetAddr> {
  const html = `<!doctype html><script type="module">
    import { registerWorker } from "/engine_sdk.js";
    const url = ${JSON.stringify(engineUrl)};
    const done = (value) => fetch("/seen", { method: "POST", body: JSON.stringify(value) });
    try { ${PAGE} } catch (error) { await done(String(error)); }
  </script>`;
  return Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
    switch (new URL(request.url).pathname) {
      case "/engine_sdk.js":
        return new Response(await Deno.readTextFile(SDK), {
          headers: { "content-type": "text/javascript; charset=utf-8" },
        });
      case "/seen":
        seen(await request.json());
        return new Response("ok");
      default:
        return new Response(html, { headers: { "content-type": "text/html; charset=utf-8" } });
    }
  });
}
