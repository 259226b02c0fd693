import assert from "node:assert/strict";
import { staticGraph } from "../tests/fakes/source_tree.ts";
import { builtinWorkers } from "./mod.ts";

Deno.test("a built-in worker that has to be configured is loaded when it starts", async () => {
  const configured = builtinWorkers.filter((it) => !it.runsAlways && !it.runsByDefault);
  const folders = configured.map(({ name }) => `/workers/${name.replace("engine-", "")}/`);

  const graph = await staticGraph(new URL("./mod.ts", import.meta.url));

  const declarations = /\/(mod|config|settings|access)\.ts$/;
  const loaded = graph.filter((it) => folders.some((folder) => it.includes(folder)));
  assert.deepEqual(loaded.filter((it) => !declarations.test(it)), []);
  assert.deepEqual(graph.filter((it) => /croner|ws@|\/ws\//.test(it)), []);
});
