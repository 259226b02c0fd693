import assert from "node:assert/strict";
import type { ClusterLogView, ClusterView, EngineRow } from "../../engine/mod.ts";
import { checkCluster } from "./checks.ts";

const LOG: ClusterLogView = {
  kind: "jetstream",
  copies: 3,
  require_sync: true,
  applied: 12,
  behind: 0,
  seen_ms_ago: 100,
  bytes: 2_048,
  problem: null,
};

function row(name: string, change: Partial<EngineRow> = {}): EngineRow {
  const link = {
    ...{ age_ms: 1, rtt_ms: 1, calls_out: 0, calls_in: 0, bytes_out: 0, bytes_in: 0 },
    queued_bytes: 0,
  };
  return {
    ...{ life: name, name, version: "1.0.0", state: "linked", keeper: false, link, log: LOG },
    ...change,
  };
}

const VIEW: ClusterView = {
  cluster: "shop",
  connected: true,
  keeper: "a",
  log: LOG,
  link_ends: {},
  engines: [row("a", { state: "here", keeper: true, link: null }), row("b")],
};

Deno.test("a cluster without problems has seven checks that are ok", () => {
  const checks = checkCluster(VIEW);

  assert.deepEqual(checks.map(({ name, status, remedy }) => [name, status, remedy]), [
    ["cluster", "ok", null],
    ["cluster versions", "ok", null],
    ["cluster built-in workers", "ok", null],
    ["keeper", "ok", null],
    ["state log", "ok", null],
    ["durability", "ok", null],
    ["links", "ok", null],
  ]);
});

Deno.test("an engine that is alone has one check, which is ok", () => {
  const [check, ...more] = checkCluster({ cluster: null, connected: false, engines: [] });

  assert.deepEqual([check!.status, more], ["ok", []]);
  assert.match(check!.message, /alone; see docs\/how-to\/cluster\.md/);
});

Deno.test("engines that keep their own state have no checks of a log", () => {
  const names = checkCluster({ ...VIEW, log: null }).map(({ name }) => name);

  assert.deepEqual(names, ["cluster", "cluster versions", "cluster built-in workers", "links"]);
});

const [HERE, OTHER] = VIEW.engines as [EngineRow, EngineRow];
const slow = { ...OTHER.link!, queued_bytes: 2 * 1024 * 1024 };
for (
  const [name, status, message, change] of [
    ["cluster", "fail", /NATS of cluster shop cannot be reached/, { connected: false }],
    ["cluster", "warn", /0 other engines/, { engines: [HERE] }],
    ["cluster versions", "warn", /a 1\.0\.0, b 2\.0\.0/, {
      engines: [HERE, row("b", { version: "2.0.0" })],
    }],
    ["cluster built-in workers", "warn", /^Engines differ: h not at b, c; q not at c$/, {
      engines: [
        row("a", { builtins: ["h", "q"] }),
        row("b", { builtins: ["q"] }),
        row("c", { builtins: [] }),
        row("older", { builtins: null }),
      ],
    }],
    ["keeper", "fail", /Keeper: none/, { keeper: null, engines: [row("a"), OTHER] }],
    ["state log", "fail", /no answer/, { log: { ...LOG, problem: "no answer" } }],
    ["state log", "warn", /b \(5000 messages\)/, {
      engines: [HERE, row("b", { log: { ...LOG, behind: 5_000 } })],
    }],
    ["state log", "warn", /b \(not seen for 9s\)/, {
      engines: [HERE, row("b", { log: { ...LOG, seen_ms_ago: 9_000 } })],
    }],
    ["durability", "warn", /not on the disk yet/, { log: { ...LOG, require_sync: false } }],
    ["durability", "warn", /known once the log is open/, {
      log: { ...LOG, problem: "too old", applied: null },
    }],
    ["durability", "warn", /one copy/, { log: { ...LOG, copies: 1 } }],
    ["links", "warn", /Frames wait for b \(2 MiB\)/, {
      engines: [HERE, row("b", { link: slow })],
    }],
    ["links", "warn", /too slow \(2\)/, { link_ends: { behind: 2 } }],
  ] as const
) {
  Deno.test(`the check ${name} is ${status} where ${message.source}`, () => {
    const found = checkCluster({ ...VIEW, ...change }).find((check) => check.name === name)!;

    assert.equal(found.status, status);
    assert.match(found.message, message);
    assert.ok(found.remedy);
  });
}
