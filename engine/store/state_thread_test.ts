import assert from "node:assert/strict";
import { runInThread, runTask } from "./state_thread.ts";

Deno.test("runInThread() gives back the result, and the reason of a failure", async () => {
  const path = `${await Deno.makeTempDir()}/none/state.db`;

  await assert.rejects(runInThread({ task: "shrink", path }), {
    code: "store_unavailable",
    message: /^The shrink failed: /,
  });
  assert.ok("failure" in runTask({ task: "copy", path, to: `${path}.copy` }));
});
