/**
 * The table of error codes in ARCHITECTURE.md is the one of the program.
 *
 * @module
 */
import assert from "node:assert/strict";
import { ERRORS } from "../sdk/typescript/wire/errors.ts";

Deno.test("ARCHITECTURE.md lists every code with its status and whether a retry can help", async () => {
  const text = await Deno.readTextFile(new URL("../ARCHITECTURE.md", import.meta.url));
  const rows = [...text.matchAll(/^\| `(\w+)` \| (\d{3}) \| (yes|no) \|/gm)];

  const documented = rows.map(([, code, status, retry]) => [code, Number(status), retry === "yes"]);

  const defined = Object.entries(ERRORS)
    .map(([code, { status, retryable }]) => [code, status, retryable]);
  assert.deepEqual(documented, defined);
});
