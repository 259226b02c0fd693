/**
 * `deno task cluster-demo`, and that what it shows is so.
 *
 * @module
 */
import assert from "node:assert/strict";
import { showCluster } from "./demo.ts";
import { withoutNats } from "./servers.ts";

const ERRORS = new Set(["invocation_stopped", "function_not_found"]);

Deno.test({
  name: "cluster-demo: calls, jobs and HTTP go on when an engine and a NATS node are killed",
  ignore: withoutNats,
  sanitizeOps: false,
  sanitizeResources: false,
  async fn() {
    const lines: string[] = [];

    const { steps, jobs } = await showCluster((line) => lines.push(line));

    assert.equal(steps.length, 5);
    for (const { what, calls, far, http, jobs } of steps) {
      // Each kind went on after what was done.
      for (const { ok } of [calls, far, http, jobs]) assert.ok(ok >= 50, `${what}: ${ok}`);
      // The engine that calls has a worker of its own: a death elsewhere is no error.
      assert.deepEqual([calls.errors, http.errors], [{}, {}], what);
      // Calls on the way to an engine that dies fail once, and calls fail while this engine is
      // between two NATS nodes.
      const codes = new Set(Object.keys(far.errors));
      assert.ok(codes.isSubsetOf(ERRORS), `${what}: ${[...codes]}`);
    }
    assert.equal(jobs.ran, jobs.put);
    assert.match(lines.join("\n"), /Cluster test: 3 engines, connected to NATS/);
    assert.match(lines.join("\n"), /Killing engine [abc] with SIGKILL: it keeps the state/);
  },
});
