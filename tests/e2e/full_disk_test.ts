/**
 * An engine whose state file cannot grow any more: writes fail with what is wrong, everything that
 * was acknowledged stays readable, health tells, and with room again a new start goes on.
 *
 * No right to mount a disk is needed: the system bounds the size of each file that the process
 * writes (`ulimit -f`). A whole file system that is full is `deno task torture state`, as root.
 *
 * @module
 */
import assert from "node:assert/strict";
import { InvocationError, type Worker } from "../../mod.ts";
import { EngineProcess } from "../fakes/engine_process.ts";
import { until } from "../fakes/until.ts";

/** Size that a file may have, in KiB. */
const FILE_KIB = 8 * 1024;
const VALUE = "v".repeat(200_000);
/** More than fit into all files of a database. */
const WRITES_MAX = 200;

const set = (worker: Worker, key: string, value: unknown) =>
  worker.trigger({ function_id: "state::set", payload: { scope: "disk", key, value } });
const get = (worker: Worker, key: string) =>
  worker.trigger<object, unknown>({
    function_id: "state::get",
    payload: { scope: "disk", key },
  });

async function assertReadable(worker: Worker, keys: readonly string[]): Promise<void> {
  for (const key of keys) assert.ok(await get(worker, key) === VALUE, `${key} is there and whole`);
}

async function health(worker: Worker): Promise<string> {
  const { status } = await worker.trigger<object, { status: string }>({
    function_id: "engine::health::check",
    payload: {},
  });
  return status;
}

Deno.test({
  name: "a state file that cannot grow: writes fail, all that was acknowledged is readable",
  ignore: Deno.build.os === "windows",
  async fn() {
    await using engine = await EngineProcess.start("", "", undefined, { fileKib: FILE_KIB });
    await using worker = engine.connect();
    const kept: string[] = [];
    let refused: unknown;
    for (let i = 0; i < WRITES_MAX && !refused; i++) {
      await set(worker, `${i}`, VALUE).then(() => void kept.push(`${i}`), (thrown) => {
        refused = thrown;
      });
    }

    assert.ok(refused instanceof InvocationError, `${WRITES_MAX} writes fit`);
    assert.equal(refused.code, "SET_ERROR");
    assert.ok(kept.length > 10, `${kept.length} writes were acknowledged before`);
    await assertReadable(worker, kept);
    await until(async () => await health(worker) !== "healthy", "health tells");
    assert.equal(await get(worker, `${kept.length}`), undefined, "what failed is not there");

    await engine.kill("SIGKILL");
    await engine.start({});
    await until(() => set(worker, "again", 1).then(() => true), () => engine.stderr);
    await assertReadable(worker, kept);
    assert.equal(await health(worker), "healthy");
  },
});
