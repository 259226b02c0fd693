import assert from "node:assert/strict";
import type { Json } from "../../../mod.ts";
import { FakeTerminal } from "../../../tests/fakes/fake_terminal.ts";
import { replicaStatus, workerStatus } from "../../../tests/fakes/worker_status.ts";
import { checkSuspects, type Suspect } from "./suspects.ts";

const SHOP: Suspect = { id: "c9", name: "shop", ip_address: "10.0.0.3", active_invocations: 2 };
const MATH: Suspect = { id: "c1", name: "math", ip_address: "127.0.0.1", active_invocations: 0 };

/** An engine with a supervised worker that does not answer, and these connections. */
function setup(suspects: readonly Suspect[]) {
  const replicas = [replicaStatus({ suspect: true, worker_ids: ["c1"] })];
  const reason = "It does not answer; calls go to other workers that offer its functions";
  const status = workerStatus({ suspect: true, reason, replicas });
  return new FakeTerminal({
    functions: {
      "engine::supervisor::list": () => ({ workers: [status] as unknown as Json }),
      "engine::supervisor::status": () => status as unknown as Json,
      "engine::workers::list": ({ status }) => {
        assert.equal(status, "suspect");
        return { workers: suspects as unknown as Json };
      },
    },
  });
}

Deno.test("worker list shows who does not answer, and each of them once", async () => {
  const terminal = setup([MATH, SHOP]);

  assert.equal(await terminal.run("worker", "list"), 0);

  assert.match(terminal.outText, /^math +suspect /m);
  assert.match(terminal.outText, /^ {2}It does not answer; calls go to other workers/m);
  assert.equal(
    terminal.outLines.at(-1),
    "suspect: shop (10.0.0.3) does not answer, with 2 running calls",
  );
  assert.ok(!terminal.outText.includes("suspect: math"));
});

Deno.test("worker status says that a worker is suspect", async () => {
  const terminal = setup([]);

  assert.equal(await terminal.run("worker", "status", "math"), 0);

  assert.match(terminal.outText, /state +ready, suspect/);
  assert.match(terminal.outText, /remark +It does not answer/);
});

Deno.test("worker list without suspect workers has no such line", async () => {
  const terminal = setup([]);

  await terminal.run("worker", "list");

  assert.ok(!terminal.outText.includes("suspect:"));
});

Deno.test("checkSuspects() names the first of many workers", () => {
  const many = Array.from({ length: 8 }, (_, i) => ({ ...SHOP, name: `shop-${i}` }));

  assert.equal(checkSuspects([]).status, "ok");
  const { status, measured, message } = checkSuspects(many);
  assert.deepEqual([status, measured], ["warn", 8]);
  assert.match(message, /^8 workers left a ping unanswered: shop-0 .* and 3 more$/);
});
