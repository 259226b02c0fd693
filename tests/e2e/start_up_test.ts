/**
 * What an engine evaluates before it listens, so that starting stays within 250 ms.
 *
 * The budget is held by which modules there are, never by a time: no part that only some engines
 * need, or that is needed later only, may be imported by a plain `import` statement.
 *
 * @module
 */
import assert from "node:assert/strict";
import { staticGraph } from "../fakes/source_tree.ts";

const ENGINE = new URL("../../engine/engine.ts", import.meta.url);
/** Parts that are imported by `import()` when they are needed. */
const LATER: Readonly<Record<string, RegExp>> = {
  "microVMs": /\/engine\/vm\//,
  "the SDKs that are laid beside a project": /\/sdk\/(npm|python)\//,
  "export of telemetry": /\/observability\/export\/(?!settings)/,
  "telemetry on disk": /\/observability\/disk/,
  "pages of metrics": /\/observability\/metrics\/prometheus/,
  "explanations": /\/observability\/health\/(explain|checks)/,
  "the console": /\/workers\/console\/(page|server|guard|dist)/,
  "the command line": /\/cli\/|commander/,
};

Deno.test("an engine evaluates no optional part before it listens", async () => {
  const modules = await staticGraph(ENGINE);

  for (const [part, pattern] of Object.entries(LATER)) {
    assert.deepEqual(modules.filter((module) => pattern.test(module)), [], part);
  }
});
