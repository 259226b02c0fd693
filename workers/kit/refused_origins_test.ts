import assert from "node:assert/strict";
import { type LogLine, recordingLog } from "../../tests/fakes/fake_http.ts";
import { ORIGINS_REPORTED_MAX, RefusedOrigins } from "./refused_origins.ts";

Deno.test("RefusedOrigins names each origin once, with the setting, and a bounded number", () => {
  const lines: LogLine[] = [];
  const refused = new RefusedOrigins(recordingLog(lines), "cors.origins of engine-http");

  for (let i = 0; i < 3; i++) refused.report("https://shop.example\n");
  assert.equal(lines.length, 1);
  assert.deepEqual([lines[0]!.text, lines[0]!.fields], [
    "a page of another origin was refused; to allow it, list its origin",
    { origin: '"https://shop.example\\n"', setting: "cors.origins of engine-http" },
  ]);

  for (let i = 0; i < 2 * ORIGINS_REPORTED_MAX; i++) refused.report(`https://${i}.example`);
  assert.equal(lines.length, ORIGINS_REPORTED_MAX);
});
