import assert from "node:assert/strict";
import { FakeMetrics, workerView } from "../../../tests/fakes/fake_metrics.ts";
import { METRICS_SAMPLES_MAX, SampleTimes, SeriesStore, Track, Tracks } from "./series.ts";

function setup() {
  const at = new FakeMetrics();
  const book = new SeriesStore(at.meters);
  at.sampler.listen((interval, sample) => book.add(interval, sample));
  const read = (more: object = {}) => book.read({ seconds: 300, top: 50, ...more });
  return { at, book, read, [Symbol.dispose]: () => at[Symbol.dispose]() };
}

Deno.test("SeriesStore stores a value per second for the engine and its functions", () => {
  using it = setup();
  it.at.clock.tick(1_000);
  it.at.meters.call("a::b", { ms: 3, times: 4 });
  it.at.clock.tick(1_000);
  it.at.clock.tick(1_000);

  const answer = it.read();

  assert.equal(answer.step_ms, 1_000);
  assert.deepEqual(answer.at_ms.map((ms) => ms - it.at.clock.wall()), [-2_000, -1_000, 0]);
  assert.deepEqual(answer.engine.calls_per_s, [0, 4, 0]);
  assert.deepEqual(answer.functions, [{
    function_id: "a::b",
    namespace: "default",
    calls_per_s: [null, 4, 0],
    errors_per_s: [null, 0, 0],
    p50_ms: [null, 3, null],
    p99_ms: [null, 3.98, null],
  }]);
});

Deno.test("SeriesStore retains 15 minutes", () => {
  using it = setup();
  it.at.clock.tick((METRICS_SAMPLES_MAX + 100) * 1_000);

  const { at_ms, engine } = it.read({ seconds: METRICS_SAMPLES_MAX });

  assert.equal(at_ms.length, METRICS_SAMPLES_MAX);
  assert.equal(engine.calls_per_s.length, METRICS_SAMPLES_MAX);
  assert.equal(it.book.engine(60).lines.length, 60);
});

Deno.test("SeriesStore returns the busiest functions of the requested time", () => {
  using it = setup();
  it.at.meters.call("busy::long_ago", { ms: 1, times: 100 });
  it.at.clock.tick(1_000);
  for (let i = 0; i < 5; i++) it.at.meters.call(`f::${i}`, { ms: 1, times: i + 1 });
  it.at.clock.tick(1_000);

  const ids = (more: object) => it.read(more).functions.map(({ function_id }) => function_id);
  assert.deepEqual(ids({ top: 2 }), ["busy::long_ago", "f::4"]);
  assert.deepEqual(ids({ top: 2, seconds: 1 }), ["f::4", "f::3"]);
  assert.deepEqual(ids({ top: 0 }), []);
  assert.deepEqual(ids({ function_id: "f::0" }), ["f::0"]);
  assert.deepEqual(ids({ function_id: "missing" }), []);
});

Deno.test("SeriesStore has no values of a worker before it connected and after it left", () => {
  using it = setup();
  it.at.clock.tick(1_000);
  it.at.workers = [workerView("w1", { name: "math", active_invocations: 7 })];
  it.at.clock.tick(1_000);
  it.at.workers = [];
  it.at.clock.tick(1_000);

  assert.deepEqual(it.read({ worker_id: "w1" }).workers, [{
    worker_id: "w1",
    name: "math",
    memory_bytes: [null, null, null],
    cpu_percent: [null, null, null],
    in_flight: [null, 7, null],
    event_loop_lag_ms: [null, null, null],
  }]);
  assert.deepEqual(it.read({ worker_id: "w2" }).workers, []);
});

Deno.test("SampleTimes retains the newest samples and numbers them consecutively", () => {
  const times = new SampleTimes();
  for (let i = 0; i < METRICS_SAMPLES_MAX + 5; i++) times.begin(i * 10);

  const last = times.last(METRICS_SAMPLES_MAX * 2);
  assert.equal(last.length, METRICS_SAMPLES_MAX);
  assert.deepEqual([last[0], last.at(-1)], [5, METRICS_SAMPLES_MAX + 4]);
  assert.equal(times.at(5), 50);
  assert.deepEqual(times.last(2).map((sample) => times.at(sample)), [
    (METRICS_SAMPLES_MAX + 3) * 10,
    (METRICS_SAMPLES_MAX + 4) * 10,
  ]);
});

Deno.test("SampleTimes starts empty", () => {
  assert.deepEqual(new SampleTimes().last(10), []);
});

Deno.test("Track returns written samples and null for others", () => {
  const track = new Track(["a", "b"]);
  track.write(1, { a: 0.1, b: null });
  track.write(3, { a: 0, b: 1e9 });

  assert.deepEqual(track.read([0, 1, 2, 3]), {
    a: [null, 0.1, null, 0],
    b: [null, null, null, 1e9],
  });
  assert.equal(track.sum("a", [1, 2]).toFixed(3), "0.100");
});

Deno.test("Track ignores values of the previous round of the ring", () => {
  const track = new Track(["a"]);
  track.write(7, { a: 5 });

  assert.deepEqual(track.read([7 + METRICS_SAMPLES_MAX]), { a: [null] });
  assert.equal(track.sum("a", [7 + METRICS_SAMPLES_MAX]), 0);
});

const given = (...keys: string[]) =>
  new Map(keys.map((key) => [key, { of: key, values: { a: 1 } }]));

Deno.test("Tracks writes the given values, and the idle value for the others", () => {
  const tracks = new Tracks<"a", string>(["a"], 10);
  tracks.write(0, given("x", "y"), { a: 0 });
  tracks.write(1, given("y"), { a: 0 });

  const read = tracks.all().map(({ of, track }) => [of, track.read([0, 1]).a]);
  assert.deepEqual(read, [["y", [1, 1]], ["x", [1, 0]]]);
});

Deno.test("Tracks without an idle value leaves absent tracks unknown", () => {
  const tracks = new Tracks<"a", string>(["a"], 10);
  tracks.write(0, given("x"));
  tracks.write(1, given());

  assert.deepEqual(tracks.all()[0]!.track.read([0, 1]).a, [1, null]);
});

Deno.test("Tracks evicts the track that has been idle longest", () => {
  const tracks = new Tracks<"a", string>(["a"], 2);
  tracks.write(0, given("x"), { a: 0 });
  tracks.write(1, given("y"), { a: 0 });
  tracks.write(2, given("z"), { a: 0 });

  assert.deepEqual(tracks.all().map(({ of }) => of), ["z", "y"]);
});

Deno.test("Tracks admits no further track while all are busy", () => {
  const tracks = new Tracks<"a", string>(["a"], 2);
  tracks.write(0, given("x", "y", "z"), { a: 0 });

  assert.deepEqual(tracks.all().map(({ of }) => of), ["x", "y"]);
});

Deno.test("Tracks stops searching once no room is left", () => {
  const tracks = new Tracks<"a", string>(["a"], 2);
  const many = given(...Array.from({ length: 1_000 }, (_, i) => `x${i}`));
  let looks = 0;
  const looked = function* () {
    for (const entry of many.entries()) {
      looks++;
      yield entry;
    }
  };
  Object.defineProperty(many, Symbol.iterator, { value: looked });

  tracks.write(0, many, { a: 0 });
  tracks.write(1, many, { a: 0 });

  assert.deepEqual(tracks.all().map(({ of }) => of), ["x0", "x1"]);
  assert.equal(looks, 6);
});

Deno.test("Tracks removes tracks that were idle for the whole retention time", () => {
  const tracks = new Tracks<"a", string>(["a"], 2);
  tracks.write(0, given("x"), { a: 0 });
  tracks.write(METRICS_SAMPLES_MAX, given(), { a: 0 });

  assert.deepEqual(tracks.all(), []);
});
