import assert from "node:assert/strict";
import { LocalEngine } from "../../tests/fakes/local_engine.ts";
import { CallSignal } from "./call_signal.ts";

Deno.test("CallSignal calls every listener once, in order, but those that were taken off", () => {
  const signal = new CallSignal();
  const heard: string[] = [];
  const [a, b, c] = ["a", "b", "c"].map((name) => () => {
    heard.push(`${name} ${signal.aborted} ${signal.reason}`);
    signal.removeEventListener("abort", c!);
  });
  for (const each of [a!, b!, c!]) signal.addEventListener("abort", each);
  signal.removeEventListener("abort", b!);
  signal.removeEventListener("abort", b!);

  signal.abort("gone");
  signal.abort("again");
  signal.addEventListener("abort", a!);

  assert.deepEqual(heard, ["a true gone", "c true gone"]);
  assert.equal(signal.reason, "gone");
});

Deno.test("CallSignal cancels a call of the SDK, and its handler hears why", async () => {
  await using local = new LocalEngine();
  const callee = await local.connect("callee");
  const caller = await local.connect("caller");
  let reason: unknown;
  callee.registerFunction("f", (_payload, _metadata, { signal }) =>
    new Promise((resolve) => {
      signal.addEventListener("abort", () => resolve(reason = signal.reason));
    }));
  await local.settle();
  const signal = new CallSignal();
  const called = caller.trigger({ function_id: "f", signal });
  const ended = assert.rejects(called, { code: "cancelled" });
  await local.settle();

  signal.abort(new Error("client gone"));
  await ended;
  await local.settle();

  assert.match(String(reason), /client gone/);
});
