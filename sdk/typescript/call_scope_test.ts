import assert from "node:assert/strict";
import { CallScopes, runningTraceparent } from "./call_scope.ts";

const SCOPE = { deadline: 5, traceparent: undefined, baggage: undefined };

Deno.test("CallScopes.current() is the scope that runs, also after a wait", async () => {
  const scopes = new CallScopes();

  const seen = await scopes.run(SCOPE, async () => {
    await Promise.resolve();
    return scopes.current();
  });

  assert.equal(seen, SCOPE);
  assert.equal(scopes.current(), undefined);
});

Deno.test("CallScopes keeps handlers that run side by side apart", async () => {
  const scopes = new CallScopes();
  const run = (deadline: number) =>
    scopes.run({ ...SCOPE, deadline }, async () => {
      await Promise.resolve();
      return scopes.current()?.deadline;
    });

  assert.deepEqual(await Promise.all([run(1), run(2)]), [1, 2]);
});

Deno.test("CallScopes of two workers do not see each other", () => {
  const [one, two] = [new CallScopes(), new CallScopes()];

  assert.equal(one.run(SCOPE, () => two.current()), undefined);
});

Deno.test("CallScopes runs tasks where the platform cannot carry scopes", () => {
  const globals = globalThis as { process?: unknown };
  const { process } = globals;
  const scopes = new CallScopes();
  globals.process = undefined;
  const result = scopes.run(SCOPE, () => 7);
  globals.process = process;

  assert.equal(result, 7);
  assert.equal(scopes.run(SCOPE, () => scopes.current()), undefined);
});

Deno.test("runningTraceparent() is that of the handler that runs, of workers that show theirs", () => {
  const [one, two] = [new CallScopes(), new CallScopes()];
  const seen: (string | undefined)[] = [];
  const look = (): void => void seen.push(runningTraceparent());

  one.run({ ...SCOPE, traceparent: "1" }, look);
  one.show();
  two.show();
  look();
  one.run({ ...SCOPE, traceparent: "1" }, look);
  two.run({ ...SCOPE, traceparent: "2" }, look);
  two.run(SCOPE, look);
  two.hide();
  two.run({ ...SCOPE, traceparent: "2" }, look);
  one.hide();

  assert.deepEqual(seen, [undefined, undefined, "1", "2", undefined, undefined]);
});
