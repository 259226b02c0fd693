import assert from "node:assert/strict";
import type { Json, JsonObject } from "../../mod.ts";
import { FakeTerminal } from "../../tests/fakes/fake_terminal.ts";

const MAIL = {
  name: "mail",
  waiting: 12,
  running: 2,
  delayed: 0,
  dead: 1,
  done_total: 5,
  failed_total: 3,
  oldest_age_ms: 62_000,
  paused: false,
  is_counting: false,
};

const DEAD = {
  id: "job-1",
  function_id: "mail::send",
  payload: { to: "x".repeat(100) },
  error: "no_route: no route",
  retries: 3,
  failures: [{
    at_ms: 1,
    code: "no_route",
    message: "no route",
    stacktrace: "Error: no\n    at f",
  }],
};

function setup(answers: Record<string, () => Json>): FakeTerminal {
  const functions = Object.fromEntries(
    Object.entries(answers).map(([name, answer]) => [`engine::queue::${name}`, answer]),
  );
  return new FakeTerminal({ functions: functions as never });
}

Deno.test("queue list shows what queues hold", async () => {
  const queues = [MAIL, { ...MAIL, name: "slow", paused: true, oldest_age_ms: null }];
  const terminal = setup({ list: () => ({ queues }) });

  assert.equal(await terminal.run("queue", "list"), 0);

  assert.deepEqual(terminal.outLines, [
    "QUEUE  WAITING  RUNNING  DELAYED  DEAD  OLDEST     STATE",
    "mail   12       2        0        1     1 min 2 s  open",
    "slow   12       2        0        1     -          paused",
  ]);
});

Deno.test("queue dead lists dead letters, and shows one with its stack", async () => {
  const terminal = setup({ dlq_messages: () => [DEAD] as unknown as Json });

  assert.equal(await terminal.run("queue", "dead", "mail"), 0);
  assert.match(terminal.outLines[1]!, /^job-1 +3 +mail::send +no_route: no route +\{"to":"x+…$/);
  assert.deepEqual(terminal.calls[0]!.payload, { topic: "mail", limit: 50 });

  assert.equal(await terminal.run("queue", "dead", "mail", "job-1"), 0);
  assert.ok(terminal.outLines.some((line) => line.includes("Stack trace of mail::send")));
  assert.equal(await terminal.run("queue", "dead", "mail", "job-2"), 1);
  assert.match(terminal.errLines.at(-1)!, /No dead letter job-2/);
});

Deno.test("queue redrive takes all or some; discard asks which", async () => {
  const terminal = setup({
    redrive: () => ({ queue: "mail", redriven: 1 }),
    discard: () => ({ queue: "mail", discarded: 2 }),
  });

  await terminal.run("queue", "redrive", "mail");
  await terminal.run("queue", "redrive", "mail", "a", "b");
  assert.equal(await terminal.run("queue", "discard", "mail"), 2);
  await terminal.run("queue", "discard", "mail", "--all");

  assert.deepEqual(terminal.calls.map(({ payload }) => payload as JsonObject), [
    { queue: "mail" },
    { queue: "mail", message_ids: ["a", "b"] },
    { queue: "mail" },
  ]);
  assert.deepEqual(terminal.outLines.slice(-1), ["2 dead letters discarded"]);
});

Deno.test("queue add sends the fields, and prints the receipt", async () => {
  const terminal = setup({ enqueue: () => ({ messageReceiptId: "r" }) });

  await terminal.run("queue", "add", "mail", "mail::send", "to=a", "n=2", "--json");

  assert.deepEqual(terminal.calls[0]!.payload, {
    queue: "mail",
    function_id: "mail::send",
    data: { to: "a", n: 2 },
  });
  assert.deepEqual(terminal.outLines, ['{"messageReceiptId":"r"}']);
});

Deno.test("queue pause, resume, stats and peek name their queue", async () => {
  const terminal = setup({
    pause: () => ({ queue: "mail", paused: true }),
    resume: () => ({ queue: "mail", paused: false }),
    stats: () => ({ ...MAIL, running_jobs: [] }),
    peek: () => ({ jobs: [] }),
  });

  for (const name of ["pause", "resume", "stats", "peek"]) {
    assert.equal(await terminal.run("queue", name, "mail"), 0);
  }
  assert.equal(await terminal.run("queue", "peek", "mail", "--limit", "0"), 2);

  assert.deepEqual(terminal.outLines.slice(0, 2), ["mail is paused", "mail is resumed"]);
  assert.deepEqual(terminal.calls.map(({ payload }) => payload), [
    { queue: "mail" },
    { queue: "mail" },
    { queue: "mail" },
    { queue: "mail", limit: 20 },
  ]);
});
