/**
 * Remarks are made once each, and not without end.
 *
 * @module
 */
import assert from "node:assert/strict";
import { HTTP_REMARKS_MAX } from "../limits.ts";
import { type LogLine, recordingLog } from "../../tests/fakes/fake_http.ts";
import { Remarks } from "./remarks.ts";

Deno.test("Remarks.make() warns once for each text, function and thing", () => {
  const lines: LogLine[] = [];
  const remarks = new Remarks(recordingLog(lines));

  for (let i = 0; i < 3; i++) {
    remarks.make("odd", "f", "x-a");
    remarks.make("odd", "g", "x-a");
    remarks.make("odd", "g", "x-b");
  }

  assert.equal(lines.length, 3);
  assert.deepEqual(lines[2], {
    level: "warn",
    text: "odd",
    fields: { function_id: "g", about: "x-b" },
  });
});

Deno.test("Remarks.make() falls silent when there were too many", () => {
  const lines: LogLine[] = [];
  const remarks = new Remarks(recordingLog(lines));

  for (let i = 0; i < HTTP_REMARKS_MAX + 10; i++) remarks.make("odd", "f", `${i}`);

  assert.equal(lines.length, HTTP_REMARKS_MAX);
});
