/**
 * The Python of the documents as an editor checks it: pyright, against the sources of the SDK.
 *
 * The TypeScript of the documents is checked by readme_test.ts.
 *
 * @module
 */
import assert from "node:assert/strict";
import { writePython } from "../../cli/types/python.ts";
import { examplesOf, readPages } from "../docs/pages.ts";
import { FUNCTIONS } from "./live_functions.ts";
import { runPyright } from "./pyright.ts";

Deno.test("the Python of the documents is correct for pyright", async () => {
  const found = examplesOf(await readPages(), "python");
  const files = Object.fromEntries(
    found.map(({ path, number, code }) => [`${path.replaceAll(/\W/g, "_")}_${number}.py`, code]),
  );

  // What the examples import: a worker of the reader, and a client that `engine types` writes.
  const own = { "worker.py": "", "api.py": writePython(FUNCTIONS, undefined) };
  const { success, text } = await runPyright({ ...own, ...files }, "basic");

  assert.ok(found.length >= 10);
  assert.ok(success, text);
});
