import assert from "node:assert/strict";
import { amount, type Finding, Report } from "./report.ts";

Deno.test("the table of targets says of each whether it is met", () => {
  const report = new Report();
  report.find({ ...finding("fast", 3.2), target: 3 });
  report.find({ ...finding("cheap", 0.2), better: "less", unit: "share", target: 0.125 });
  report.find(finding("without a target", 1));

  const text = report.toMarkdown("a machine");

  assert.match(text, /\| relay: fast \| 3\.20 × \| ≥ 3\.00 × \| yes \|/);
  assert.match(text, /\| relay: cheap \| 20\.0 % \| ≤ 12\.5 % \| \*\*no\*\* \|/);
  assert.doesNotMatch(text, /without a target/);
});

Deno.test("a target that is reached exactly is met, in both directions", () => {
  const report = new Report();
  report.find({ ...finding("a", 3), target: 3 });
  report.find({ ...finding("b", 3), better: "less", target: 3 });

  assert.doesNotMatch(report.toMarkdown(""), /no/);
});

Deno.test("what was not measured stands above the tables, with its reason", () => {
  const report = new Report();
  report.gaps.push({ section: "peers", reason: "nats-server is not installed", failed: false });
  report.gaps.push({ section: "http", reason: "no answer", failed: true });
  report.show("Calls", "| a |", "A note.");

  const text = report.toMarkdown("a machine");

  assert.match(text, /^a machine\n\n- peers was not measured: nats-server is not installed\n/);
  assert.match(text, /- http failed: no answer\n\n## Targets/);
  assert.match(text, /## Calls\n\n\| a \|\n\nA note\.$/);
});

Deno.test("a finding is a number and its name is its own", () => {
  const report = new Report();
  report.find(finding("a", 1));

  assert.throws(() => report.find(finding("a", 2)), /a twice/);
  assert.throws(() => report.find(finding("b", NaN)), /b is NaN/);
  assert.throws(() => report.find(finding("c", 1 / 0)), /c is Infinity/);
});

Deno.test("the file has the findings and what they came from", () => {
  const report = new Report();
  report.find(finding("a", 1));
  report.measurements.push({ section: "relay", situation: "100 B", subject: "raw", rounds: [] });

  assert.deepEqual(JSON.parse(JSON.stringify(report.toFile("m"))), {
    version: 1,
    machine: "m",
    findings: [finding("a", 1)],
    measurements: report.measurements,
    gaps: [],
  });
});

Deno.test("amounts are written for people", () => {
  assert.equal(amount(3.456, "times"), "3.46 ×");
  assert.equal(amount(12.34, "times"), "12.3 ×");
  assert.equal(amount(0.456, "share"), "45.6 %");
  assert.equal(amount(123.4, "ms"), "123 ms");
  assert.equal(amount(1.25, "µs"), "1.3 µs");
});

function finding(name: string, value: number): Finding {
  return { section: "relay", name, value, unit: "times", better: "more" };
}
