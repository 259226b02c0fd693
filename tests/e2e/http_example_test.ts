/**
 * The documents' example of authentication per route, run as it stands there.
 *
 * @module
 */
import assert from "node:assert/strict";
import { exampleWith } from "../docs/pages.ts";
import { EngineProcess } from "../fakes/engine_process.ts";
import { PATIENCE_MS, until } from "../fakes/until.ts";

const HTTP = "  - name: engine-http\n    config: { port: 0 }\n";
const ROOT = new URL("../../", import.meta.url);

/** The port of `engine-http`, as the engine reports it. */
async function httpUrl(engine: EngineProcess): Promise<string> {
  await using worker = engine.connect("asks");
  const { endpoints } = await worker.trigger<object, { endpoints: Endpoint[] }>({
    function_id: "engine::supervisor::info",
    payload: {},
  });
  return endpoints.find(({ name }) => name === "http")!.url;
}

interface Endpoint {
  readonly name: string;
  readonly url: string;
}

Deno.test("the documents' middleware gives the handler a user, and refuses who has none", async () => {
  await using engine = await EngineProcess.start(HTTP);
  const file = await Deno.makeTempFile({ suffix: ".ts" });
  await Deno.writeTextFile(file, await exampleWith("ts", "auth::user"));
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--no-check", "--config", new URL("deno.json", ROOT).pathname, file],
    env: { ENGINE_URL: engine.url },
    stdout: "null",
    stderr: "null",
    signal: AbortSignal.timeout(PATIENCE_MS),
  }).spawn();
  try {
    const url = `${await httpUrl(engine)}/orders/mine`;
    const ask = (headers: HeadersInit = {}) => fetch(url, { headers });
    await until(async () => {
      const { status, body } = await ask();
      await body?.cancel();
      return status === 401;
    }, "the route is there");

    const refused = await ask({ authorization: "Bearer wrong" });
    const answered = await ask({ authorization: "Bearer key-of-ada" });

    assert.equal(refused.headers.get("www-authenticate"), "Bearer");
    assert.equal((await refused.json()).error.message, "Sign in first");
    assert.deepEqual(await answered.json(), { orders_of: "Ada" });
  } finally {
    child.kill("SIGKILL");
    await child.status;
    await Deno.remove(file);
  }
});
