import assert from "node:assert/strict";
import type { WorkerSpec } from "./manifest.ts";
import { probePython } from "./python.ts";

/** A directory whose `bin` holds a python3 that is this script. */
async function withPython(
  script: string,
  check: (probe: () => ReturnType<typeof probePython>) => Promise<void>,
): Promise<void> {
  const directory = await Deno.makeTempDir();
  await Deno.writeTextFile(`${directory}/python3`, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  await check(() => probePython("w", { directory } as WorkerSpec, { PATH: directory }));
  await Deno.remove(directory, { recursive: true });
}

Deno.test("probePython() knows the Python of this machine", async () => {
  const spec = { directory: "/" } as WorkerSpec;

  const { version } = await probePython("w", spec, { PATH: Deno.env.get("PATH")! });

  assert.match(version, /^3\.\d+\.\d+/);
});

Deno.test("probePython() refuses a Python that is too old", () =>
  withPython("echo False True 3.8.2", async (probe) => {
    await assert.rejects(probe(), {
      code: "launch_failed",
      message: "Worker w needs Python 3.10 or later; python3 is 3.8.2",
    });
  }));

Deno.test("probePython() reports a Python that does not run, with its last line", () =>
  withPython("echo first >&2; echo broken >&2; exit 1", async (probe) => {
    await assert.rejects(probe(), {
      code: "launch_failed",
      message: "Worker w needs python3, which does not run here: broken",
    });
  }));

Deno.test("probePython() says whether there is pip", () =>
  withPython("echo True False 3.11.2", async (probe) => {
    assert.deepEqual(await probe(), { version: "3.11.2", hasPip: false });
  }));
