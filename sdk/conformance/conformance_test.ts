/**
 * Both SDKs fulfil the duties of PROTOCOL 10, and an SDK that does not is reported.
 *
 * @module
 */
import assert from "node:assert/strict";
import { findPython, PYTHON_ENV } from "../../tests/fakes/programs.ts";
import { type ConformanceOptions, type DutyReport, runConformance } from "./run.ts";

const FOLDER = new URL(".", import.meta.url).pathname;
const CONFIG = new URL("../../deno.json", import.meta.url).pathname;
const TYPESCRIPT = [Deno.execPath(), "run", "-A", "-q", "-c", CONFIG, `${FOLDER}probe.ts`];

/** Runs all duties and reports each as a step. */
async function conforms(t: Deno.TestContext, options: ConformanceOptions): Promise<void> {
  const reports = await runConformance(options);
  assert.ok(reports.length > 50, `${reports.length} duties`);
  for (const { section, name, outcome, problem } of reports) {
    const ignore = outcome === "skip";
    const fn = () => assert.equal(outcome, "pass", problem);
    await t.step({ name: `${section} ${name}`, ignore, fn });
  }
}

Deno.test("the TypeScript SDK fulfils its duties", async (t) => {
  await conforms(t, { command: TYPESCRIPT });
});

Deno.test({
  name: "the Python SDK fulfils its duties",
  ignore: !await findPython("part of sdk/conformance/conformance_test.ts"),
  fn: (t) => conforms(t, { command: ["python3", `${FOLDER}probe.py`], env: PYTHON_ENV }),
});

Deno.test("every duty of a probe that exits fails, with its output", async () => {
  const command = [Deno.execPath(), "eval", "console.error('no such engine'); Deno.exit(3)"];

  const reports = await runConformance({ command });

  const outcomes = new Set(reports.map(({ outcome }) => outcome));
  assert.deepEqual(outcomes, new Set<DutyReport["outcome"]>(["fail", "warn", "skip"]));
  assert.match(reports[0]!.problem!, /the probe exited with 3\n.*no such engine/);
});

Deno.test("main.ts exits with 1 and prints reports as JSON when duties fail", async () => {
  const { code, stdout } = await main("--json", "--", Deno.execPath(), "eval", "");

  const { totals, duties } = JSON.parse(stdout);
  assert.equal(code, 1);
  assert.equal(totals.pass, 0);
  assert.equal(totals.fail + totals.warn + totals.skip, duties.length);
  assert.deepEqual(Object.keys(duties[0]), ["section", "name", "outcome", "problem"]);
});

Deno.test("main.ts exits with 2 without a command and for an unknown flag", async () => {
  for (const args of [["--json"], ["--", ...[]], ["--fast", "--", "true"]]) {
    const { code, stderr } = await main(...args);

    assert.equal(code, 2);
    assert.match(stderr, /^usage: /);
  }
});

async function main(...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "-q", "-c", CONFIG, `${FOLDER}main.ts`, ...args],
    env: { NO_COLOR: "1" },
  }).output();
  const read = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
  return { code, stdout: read(stdout), stderr: read(stderr) };
}
