/**
 * @module
 */
import assert from "node:assert/strict";
import type { ClusterLogView, ClusterView } from "../../../../../engine/ports/directory.ts";
import { endsText, followText, isBehind, keeperText, logText } from "./cluster_rows.ts";

const LOG: ClusterLogView = {
  kind: "jetstream",
  copies: 3,
  require_sync: true,
  applied: 7,
  behind: 0,
  seen_ms_ago: 50,
  bytes: 10,
  problem: null,
};

const engine = { life: "1", name: "a", version: "1", state: "here", keeper: true, link: null };
const INFO = { cluster: "shop", connected: true, keeper: "1", log: LOG, engines: [engine] };

Deno.test("the keeper is named, or why there is none", () => {
  const text = (change: Partial<ClusterView>) => keeperText({ ...INFO, ...change } as ClusterView);

  assert.equal(text({}), "a");
  assert.match(text({ keeper: "2" }), /without a link/);
  assert.match(text({ keeper: null }), /^None/);
  assert.match(text({ log: null }), /Each engine/);
});

Deno.test("a log is shown with its kind, its copies and its safety", () => {
  assert.equal(logText(LOG), "JetStream, 3 copies");
  assert.equal(
    logText({ ...LOG, copies: 1, require_sync: false }),
    "JetStream, 1 copy, not checked for sync",
  );
  assert.equal(logText({ ...LOG, kind: "postgres", copies: null }), "Postgres");
});

Deno.test("an engine follows the log, is behind, or does not see it", () => {
  assert.deepEqual([followText(LOG), isBehind(LOG)], ["all 7", false]);
  const behind = (count: number) => {
    const log = { ...LOG, behind: count };
    return [followText(log), isBehind(log)];
  };
  assert.deepEqual(behind(3), ["3 behind", false]);
  assert.deepEqual(behind(1_200), ["1,200 behind", true]);
  assert.equal(followText({ ...LOG, applied: null }), "nothing yet");
  assert.ok(isBehind({ ...LOG, seen_ms_ago: 9_000 }));
  assert.deepEqual([followText(null), isBehind(undefined)], [null, false]);
});

Deno.test("ends of links are those that happened", () => {
  assert.equal(endsText({ ...INFO, link_ends: { gone: 2, lost: 0 } } as never), "gone 2");
  assert.equal(endsText(INFO as never), null);
});
