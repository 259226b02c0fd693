import assert from "node:assert/strict";
import type { FunctionLoad } from "../core/function_table.ts";
import type { Link } from "./link.ts";
import { LoadReports } from "./load_reports.ts";

function setup() {
  const loads: FunctionLoad[] = [];
  const reported: unknown[][] = [];
  const told: unknown[] = [];
  const link = { tell: (message: unknown) => told.push(message) } as unknown as Link;
  const reports = new LoadReports({
    loads: () => loads,
    reportLoad: (...all) => void reported.push(all),
  });
  const send = (): unknown[] => {
    reports.send([{ link }]);
    return told.splice(0);
  };
  return { loads, reports, reported, send, link };
}

const load = (id: string, replicas: number, running: number): FunctionLoad => ({
  id,
  namespace: "default",
  replicas,
  running,
});

Deno.test("only what has changed is sent, and nothing of idle functions", () => {
  const { loads, send } = setup();
  loads.push(load("f", 1, 0), load("g", 2, 0));

  assert.deepEqual(send(), [{ type: "load", functions: [["g", "default", 2, 0]] }]);
  assert.deepEqual(send(), []);
  loads[0] = load("f", 1, 5);
  assert.deepEqual(send(), [{ type: "load", functions: [["f", "default", 1, 5]] }]);
  loads[0] = load("f", 1, 0);
  assert.deepEqual(send(), [{ type: "load", functions: [["f", "default", 1, 0]] }]);
});

Deno.test("of very many functions each report has a part", () => {
  const { loads, send } = setup();
  for (let i = 0; i < 2_500; i++) loads.push(load(`f${i}`, 1, 1));

  const counts = [1, 2, 3, 4].map(() => {
    const [message] = send() as { functions: unknown[] }[];
    return message?.functions.length ?? 0;
  });

  assert.deepEqual(counts, [1_000, 1_000, 500, 0]);
});

Deno.test("a new link gets everything", () => {
  const { loads, send, reports, link } = setup();
  loads.push(load("f", 3, 7));
  send();

  reports.forget(link);

  assert.equal(send().length, 1);
});

Deno.test("a report is passed on, and what does not fit in it is passed over", () => {
  const { reports, reported } = setup();

  reports.take("b", {
    functions: [["f", "default", 2, 9], ["f"], 7, ["f", "default", -1, 0], ["f", 1, 2, 3]],
  });
  reports.take("b", { functions: "all" });
  reports.take("b", {});

  assert.deepEqual(reported, [["b", "f", "default", { replicas: 2, running: 9 }]]);
});
