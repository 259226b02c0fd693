import assert from "node:assert/strict";
import { compare, findWorse, readReportFile, regressions, showComparison } from "./compare.ts";
import type { Finding } from "./report.ts";

Deno.test("a ratio of which more is better regresses when it falls by over 15 %", () => {
  const before = [finding("a", 10), finding("b", 10), finding("c", 10)];
  const now = [finding("a", 8.49), finding("b", 8.51), finding("c", 30)];

  const worse = regressions(compare(before, now));

  assert.deepEqual(worse.map(({ finding, before }) => [finding.name, before]), [["a", 10]]);
});

Deno.test("a ratio of which less is better regresses when it grows by over 15 %", () => {
  const before = [finding("a", 1, "less"), finding("b", 1, "less"), finding("c", 1, "less")];
  const now = [finding("a", 1.16, "less"), finding("b", 1.14, "less"), finding("c", 0.1, "less")];

  const worse = regressions(compare(before, now));

  assert.deepEqual(worse.map(({ finding }) => finding.name), ["a"]);
});

Deno.test("times and sizes are not compared: they depend on the machine", () => {
  const before = [{ ...finding("start", 50, "less"), unit: "ms" as const }];
  const now = [{ ...finding("start", 500, "less"), unit: "ms" as const }];

  assert.deepEqual(compare(before, now), { changes: [], missing: [] });
});

Deno.test("a ratio that was not measured again is named as missing", () => {
  const { missing, changes } = compare([finding("a", 1), finding("b", 1)], [finding("b", 1)]);

  assert.deepEqual(missing, ["a"]);
  assert.equal(changes.length, 1);
});

Deno.test("what only the later run has is not compared", () => {
  assert.deepEqual(compare([], [finding("new", 1)]), { changes: [], missing: [] });
});

Deno.test("what seems worse is measured once more, its section only", async () => {
  const before = [finding("a", 10), finding("b", 10), { ...finding("c", 10), section: "http" }];
  const now = [finding("a", 1), finding("b", 1), { ...finding("c", 9), section: "http" }];
  const asked: string[][] = [];

  const worse = await findWorse(before, now, (sections) => {
    asked.push([...sections]);
    return Promise.resolve([finding("a", 9), finding("b", 2)]);
  });

  assert.deepEqual(asked, [["relay"]]);
  assert.deepEqual(worse.map(({ finding }) => finding.name), ["b"]);
});

Deno.test("a ratio that the second look cannot find stays worse", async () => {
  const worse = await findWorse([finding("a", 10)], [finding("a", 1)], () => Promise.resolve([]));

  assert.deepEqual(worse.map(({ finding }) => finding.name), ["a"]);
});

Deno.test("nothing is measured again when nothing seems worse", async () => {
  const again = () => Promise.reject(new Error("measured again"));

  assert.deepEqual(await findWorse([finding("a", 10)], [finding("a", 11)], again), []);
});

Deno.test("showComparison() marks what counts as worse and names what is missing", () => {
  const before = [finding("a", 10), finding("b", 10), finding("c", 10), finding("gone", 1)];
  const found = compare(before, [finding("a", 5), finding("b", 5), finding("c", 12)]);

  const text = showComparison(found, found.changes.slice(0, 1));

  assert.match(text, /\| relay: a \| 10\.0 × \| 5\.00 × \| \*\*−50 %\*\* \|/);
  assert.match(text, /\| relay: b \| 10\.0 × \| 5\.00 × \| −50 % \|/);
  assert.match(text, /\| relay: c \| 10\.0 × \| 12\.0 × \| \+20 % \|/);
  assert.match(text, /\n- not measured: gone$/);
});

Deno.test("readReportFile() reads what a run has written", async () => {
  const file = {
    version: 1,
    machine: "m",
    findings: [finding("a", 1)],
    measurements: [],
    gaps: [],
  };

  assert.deepEqual(await reading(JSON.stringify(file)), file);
});

const WRONG: Readonly<Record<string, string>> = {
  "no JSON": "{",
  "null": "null",
  "a list": "[]",
  "another version": '{"version":2,"findings":[]}',
  "no findings": '{"version":1}',
  "a finding without a value":
    '{"version":1,"findings":[{"name":"a","unit":"times","better":"more"}]}',
};

for (const [what, text] of Object.entries(WRONG)) {
  Deno.test(`readReportFile() refuses ${what}`, async () => {
    await assert.rejects(reading(text), /cannot be read|is not a file that deno task bench/);
  });
}

Deno.test("readReportFile() names a file that is not there", async () => {
  await assert.rejects(readReportFile("/nowhere/bench.json"), /\/nowhere\/bench\.json cannot be/);
});

async function reading(text: string): Promise<unknown> {
  const path = await Deno.makeTempFile();
  try {
    await Deno.writeTextFile(path, text);
    return await readReportFile(path);
  } finally {
    await Deno.remove(path);
  }
}

function finding(name: string, value: number, better: Finding["better"] = "more"): Finding {
  return { section: "relay", name, value, unit: "times", better };
}
