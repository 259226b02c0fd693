import assert from "node:assert/strict";
import type { FunctionView } from "../../../engine/ports/directory.ts";
import { FakeMeters } from "../../../tests/fakes/fake_meters.ts";
import { CountReader, DeltaSum } from "./samples_counts.ts";

/** Internal functions are those whose id begins with `hidden`. */
const directory = {
  function: (_: string, id: string) =>
    id.startsWith("gone") ? undefined : { internal: id.startsWith("hidden") } as FunctionView,
};

Deno.test("CountReader tells what happened since the last reading, and nothing twice", () => {
  const meters = new FakeMeters();
  meters.call("a::before", { ms: 1 });
  const reader = new CountReader(meters, directory);
  meters.call("a::b", { ms: 3, times: 5 });
  meters.call("a::b", { ms: 3, code: "boom", times: 2 });

  const [delta, ...others] = reader.read();

  assert.deepEqual(others, []);
  const { durations, ...rest } = delta!;
  assert.deepEqual(rest, {
    function_id: "a::b",
    namespace: "default",
    calls: 7,
    errors: 2,
    in_flight: 0,
    kind: "user",
  });
  assert.equal(durations[2], 7);
  assert.deepEqual(reader.read(), []);
});

Deno.test("CountReader tells a call that runs each time, and its end once", () => {
  const meters = new FakeMeters();
  const reader = new CountReader(meters, directory);
  meters.call("a::b");

  assert.deepEqual([reader.read(), reader.read()].map(([d]) => [d!.calls, d!.in_flight]), [
    [1, 1],
    [0, 1],
  ]);
  meters.end("a::b", 500, "timeout");
  const [ended] = reader.read();
  assert.deepEqual([ended!.calls, ended!.errors, ended!.in_flight, ended!.durations[8]], [
    0,
    1,
    0,
    1,
  ]);
  assert.deepEqual(reader.read(), []);
});

Deno.test("CountReader tells equal ids of two namespaces apart", () => {
  const meters = new FakeMeters();
  const reader = new CountReader(meters, directory);
  meters.call("a::b", { ms: 1, namespace: "one" });
  meters.call("a::b", { ms: 1, namespace: "two", times: 2 });

  assert.deepEqual(reader.read().map(({ namespace, calls }) => [namespace, calls]), [
    ["one", 1],
    ["two", 2],
  ]);
});

Deno.test("CountReader says whose functions they are", () => {
  const meters = new FakeMeters();
  const reader = new CountReader(meters, directory);
  for (const id of ["engine::x", "hidden::y", "a::b", "gone::z"]) meters.call(id, { ms: 1 });

  assert.deepEqual(reader.read().map(({ kind }) => kind), ["engine", "hidden", "user", "user"]);
});

Deno.test("CountReader starts anew with a meter that went and came back", () => {
  const meters = new FakeMeters();
  const reader = new CountReader(meters, directory);
  meters.call("a::b", { ms: 1, times: 9 });
  reader.read();
  meters.forget("a::b");
  reader.read();
  meters.call("a::b", { ms: 1, times: 2 });

  assert.equal(reader.read()[0]!.calls, 2);
});

Deno.test("DeltaSum adds up, and running calls are those of the last while", () => {
  const meters = new FakeMeters();
  const reader = new CountReader(meters, directory);
  const sum = new DeltaSum();
  meters.call("a::b");
  meters.call("c::d", { ms: 1 });
  sum.add(reader.read());
  meters.end("a::b", 3, "boom");
  meters.call("a::b", { ms: 3 });
  sum.add(reader.read());

  const found = sum.functions.map((each) => [each.function_id, each.calls, each.errors]);
  assert.deepEqual(found, [["a::b", 2, 1], ["c::d", 1, 0]]);
  assert.deepEqual(sum.functions.map(({ in_flight }) => in_flight), [0, 0]);
  assert.equal(sum.functions[0]!.durations[2], 2);
  sum.clear();
  assert.deepEqual(sum.functions, []);
});

Deno.test("DeltaSum leaves what it was given as it was", () => {
  const meters = new FakeMeters();
  const reader = new CountReader(meters, directory);
  meters.call("a::b", { ms: 1 });
  const deltas = reader.read();
  const sum = new DeltaSum();
  sum.add(deltas);
  sum.add(deltas);

  assert.equal(deltas[0]!.durations[0], 1);
  assert.equal(deltas[0]!.calls, 1);
});
