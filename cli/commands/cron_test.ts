import assert from "node:assert/strict";
import { InvocationError, type Json } from "../../mod.ts";
import { FakeTerminal } from "../../tests/fakes/fake_terminal.ts";

const JOB = {
  job_id: "7d0e",
  function_id: "report::daily",
  expression: "0 0 9 * * MON-FRI",
  timezone: "Europe/Berlin",
  running: 0,
  next: ["2026-11-24T08:00:00+00:00"],
  last: [{ outcome: "ok", duration_ms: 12 }],
};

function setup(answers: Record<string, Json>) {
  return new FakeTerminal({
    functions: Object.fromEntries(
      Object.entries(answers).map(([name, answer]) => [`engine::cron::${name}`, () => answer]),
    ),
  });
}

Deno.test("engine cron list shows the next time and the last run of each trigger", async () => {
  const ended = { ...JOB, next: [], last: [], job_id: "1" };
  const jobs = [JOB, { ...JOB, running: 1, job_id: "2" }, ended];
  const terminal = setup({ list: { jobs, count: 5 } });

  assert.equal(await terminal.run("cron", "list", "report::daily"), 0);

  assert.deepEqual(terminal.calls[0]!.payload, { function_id: "report::daily" });
  assert.match(terminal.outLines[0]!, /^FUNCTION +EXPRESSION +ZONE +NEXT +LAST +ID$/);
  assert.match(terminal.outLines[1]!, /MON-FRI +Europe\/Berlin +2026-11-24T08.* +ok, 12 ms +7d0e$/);
  assert.match(terminal.outLines[2]!, / running +2$/);
  assert.match(terminal.outLines[3]!, / never +1$/);
  assert.deepEqual(terminal.errLines, ["2 more are not shown; name a function"]);
});

Deno.test("engine cron list says when there is nothing, and prints JSON for programs", async () => {
  const empty = setup({ list: { jobs: [], count: 0 } });
  assert.equal(await empty.run("cron", "list"), 0);
  assert.deepEqual([empty.outLines, empty.errLines], [[], ["No cron triggers"]]);

  const terminal = setup({ list: { jobs: [JOB], count: 1 } });
  await terminal.run("cron", "list", "--json");
  assert.deepEqual(JSON.parse(terminal.outText), [JOB]);
});

Deno.test("engine cron next prints times, one a line", async () => {
  const terminal = setup({ next: { next: ["a", "b"] } });

  assert.equal(await terminal.run("cron", "next", "* * * * * *", "--timezone", "UTC"), 0);
  assert.equal(await terminal.run("cron", "next", "* * * * * *", "--count", "0"), 2);

  assert.deepEqual(terminal.outLines, ["a", "b"]);
  assert.deepEqual(terminal.calls.map(({ payload }) => payload), [
    { expression: "* * * * * *", timezone: "UTC", count: 5 },
  ]);
  assert.match(terminal.errText, /--count: expected 1 to 100/);
});

Deno.test("engine cron run exits by the outcome", async () => {
  const run = { job_id: "1", function_id: "f::a", duration_ms: 3 };
  const good = setup({ run: { ...run, outcome: "ok" } });
  assert.equal(await good.run("cron", "run", "f::a"), 0);
  assert.deepEqual(good.outLines, ["f::a: ok, 3 ms"]);
  assert.deepEqual(good.calls[0]!.payload, { job_id: "f::a" });

  const bad = setup({ run: { ...run, outcome: "failed", error: "my_code: oh" } });
  assert.equal(await bad.run("cron", "run", "f::a", "--json"), 1);
  assert.match(bad.errText, /my_code: oh/);
  assert.equal(JSON.parse(bad.outText).outcome, "failed");
});

Deno.test("an error of the engine ends a command with its message", async () => {
  const message = "Cron expression is required";
  const terminal = new FakeTerminal({
    functions: {
      "engine::cron::next": () => {
        throw new InvocationError({ code: "INVALID_ARGUMENTS", message }, "engine::cron::next");
      },
    },
  });

  assert.equal(await terminal.run("cron", "next", ""), 1);
  assert.match(terminal.errText, /Cron expression is required/);
});
