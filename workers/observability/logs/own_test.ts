/**
 * What engine-observability itself writes to the engine's log is known when it comes back.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { Log } from "../../../engine/ports/log.ts";
import { type LogLine, recordingLog } from "../../../tests/fakes/fake_http.ts";
import { ownLog } from "./own.ts";

Deno.test("ownLog() tells while it writes that the line is one that is kept already", () => {
  const seen: boolean[] = [];
  const lines: LogLine[] = [];
  const inner = recordingLog(lines);
  const it = ownLog({
    ...inner,
    info: (text, fields) => {
      seen.push(it.isSpeaking());
      inner.info(text, fields);
    },
  });

  it.said.info("a", { x: 1 });
  it.own.info("b", { x: 2 });

  assert.deepEqual(seen, [true, false]);
  assert.deepEqual(lines.map(({ text, fields }) => [text, fields]), [
    ["a", { x: 1 }],
    ["b", { by: "engine-observability", x: 2 }],
  ]);
  assert.equal(it.isSpeaking(), false);
});

Deno.test("ownLog() is silent again after a log that failed", () => {
  const it = ownLog({
    warn: () => {
      throw new Error("full");
    },
  } as unknown as Log);

  assert.throws(() => it.said.warn("a"), /full/);
  assert.equal(it.isSpeaking(), false);
});
