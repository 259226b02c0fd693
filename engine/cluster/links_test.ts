/**
 * Engines find each other, call each other, and notice when another one is gone.
 *
 * @module
 */
import assert from "node:assert/strict";
import { answer, call, handed, only, results } from "../../tests/fakes/fake_router.ts";
import type { FakeWorker as RouterWorker } from "../../tests/fakes/fake_router.ts";
import { FakeCluster, type FakeWorker } from "../../tests/cluster/fake_engine.ts";
import { encodeHello } from "./hello.ts";
import { DRAIN_TIMEOUT_MS, HELLO_MS } from "./links.ts";
import { KIND, makePacket, readHead } from "./packet.ts";
import type { BusAnswer } from "./transport.ts";

const of = (worker: FakeWorker): RouterWorker => worker as unknown as RouterWorker;

/** Two linked engines, `f` of a worker at B, and a caller at A. */
function setup() {
  const cluster = new FakeCluster();
  const [a, b] = [cluster.start(), cluster.start()];
  const worker = b.worker("shop");
  worker.say({ type: "registerfunction", id: "f" });
  const caller = a.worker("caller");
  cluster.clock.tick(10);
  caller.connection.take();
  worker.connection.take();
  return { cluster, clock: cluster.clock, network: cluster.network, a, b, worker, caller };
}

Deno.test("two engines link within a moment, whichever has the smaller life", () => {
  const cluster = new FakeCluster();
  const b = cluster.start({}, "bbbbbbbbbbbbbbbb");
  cluster.clock.tick(500);
  const a = cluster.start({}, "aaaaaaaaaaaaaaaa");
  const c = cluster.start({}, "cccccccccccccccc");
  cluster.clock.tick(300);

  assert.deepEqual(a.others, [b.name, c.name]);
  assert.deepEqual(b.others, [a.name, c.name]);
  assert.deepEqual(c.others, [a.name, b.name]);
  cluster.stop();
  assert.equal(cluster.clock.waiting, 0, "something is left on the clock");
});

Deno.test("a call of a worker at A runs at B, with its payload unchanged", () => {
  const { cluster, clock, worker, caller } = setup();
  const data = '{"n":12345678901234567890, "text":"a\\u0041\\n","e":[ ]}';

  caller.say(`{"type":"invokefunction","invocation_id":"1","function_id":"f","data":${data}}`);
  clock.tick(2);
  const [text] = worker.connection.takeTexts();
  assert.ok(text!.includes(`"data":${data}`), text);
  const { invocation_id } = JSON.parse(text!);
  worker.say(
    `{"type":"invocationresult","invocation_id":"${invocation_id}","function_id":"f","result":${data}}`,
  );
  clock.tick(2);

  const [result] = caller.connection.takeTexts();
  assert.ok(result!.startsWith('{"type":"invocationresult","invocation_id":"1"'), result);
  assert.ok(result!.includes(`"result":${data}`), result);
  cluster.stop();
});

Deno.test("progress, cancellation and the deadline pass a link", () => {
  const { cluster, clock, worker, caller } = setup();
  call(of(caller), "1");
  call(of(caller), "2", { timeout_ms: 500 });
  clock.tick(2);
  const [first, second] = handed(of(worker));

  worker.say({ type: "invocationprogress", invocation_id: first!.invocation_id, data: 7 });
  clock.tick(2);
  assert.deepEqual(only(of(caller)), { type: "invocationprogress", invocation_id: "1", data: 7 });

  caller.say({ type: "cancelinvocation", invocation_id: "1", reason: "enough" });
  clock.tick(2);
  assert.deepEqual(results(of(caller)), { "1": "cancelled" });
  assert.deepEqual(only(of(worker)), {
    type: "cancelinvocation",
    invocation_id: first!.invocation_id,
    reason: "enough",
  });

  clock.tick(500);
  assert.deepEqual(results(of(caller)), { "2": "timeout" });
  const { invocation_id, reason } = only(of(worker)) as { invocation_id: string; reason: string };
  assert.deepEqual([invocation_id, reason], [second!.invocation_id, "timeout"]);
  cluster.stop();
});

Deno.test("a killed engine is noticed within half a second, and its functions are gone", () => {
  const { cluster, clock, a, b, caller } = setup();
  call(of(caller), "1");
  clock.tick(2);

  b.kill();
  clock.tick(400);
  call(of(caller), "2");

  assert.deepEqual(results(of(caller)), { "1": "invocation_stopped", "2": "function_not_found" });
  assert.deepEqual(a.others, []);
  assert.deepEqual([...a.links.ends], [["gone", 1]]);
  cluster.stop();
});

Deno.test("an engine that hangs is noticed within two seconds, and linked again when it is back", () => {
  const { cluster, clock, a, b, network, caller } = setup();
  call(of(caller), "1");
  clock.tick(2);

  network.fate = (from, to) => ({ delay_ms: 1, copies: from === b.bus || to === b.bus ? 0 : 1 });
  clock.tick(2_000);
  assert.deepEqual(results(of(caller)), { "1": "invocation_stopped" });
  assert.deepEqual(a.others, []);
  network.fate = () => ({ delay_ms: 1, copies: 1 });
  clock.tick(HELLO_MS + 500);

  assert.deepEqual([a.others, b.others], [[b.name], [a.name]]);
  call(of(caller), "2");
  assert.deepEqual(results(of(caller)), {}, "f is there again");
  cluster.stop();
});

Deno.test("a lost packet ends the link, also when it was the last one", () => {
  const { cluster, clock, a, b, network, caller } = setup();
  let lost = 0;
  network.fate = (_from, to, data) => {
    const isLost = to === b.bus && readHead(data)?.kind === KIND.data && lost++ === 0;
    return { delay_ms: 1, copies: isLost ? 0 : 1 };
  };

  call(of(caller), "1");
  clock.tick(600);

  assert.equal(lost, 1);
  assert.deepEqual(results(of(caller)), { "1": "invocation_stopped" });
  assert.deepEqual([...a.links.ends.keys(), ...b.links.ends.keys()].sort(), ["lost", "reset"]);
  assert.deepEqual([a.others, b.others], [[b.name], [a.name]]);
  call(of(caller), "2");
  assert.deepEqual(results(of(caller)), {});
  cluster.stop();
});

Deno.test("a packet that comes twice, or late, has no effect", () => {
  const { cluster, clock, a, network, worker, caller } = setup();
  network.fate = () => ({ delay_ms: 1, copies: 2 });

  for (let i = 0; i < 5; i++) call(of(caller), `${i}`);
  clock.tick(2);
  const calls = handed(of(worker));
  for (const { invocation_id } of calls) answer(of(worker), invocation_id);
  clock.tick(2_000);

  assert.equal(calls.length, 5);
  assert.equal(Object.keys(results(of(caller))).length, 5);
  assert.equal(a.links.ends.size, 0);
  cluster.stop();
});

Deno.test("while the bus is away, calls of local functions go on and others are not found", () => {
  const { cluster, clock, a, b, caller } = setup();
  const near = a.worker("near");
  near.say({ type: "registerfunction", id: "local" });
  call(of(caller), "1");
  clock.tick(2);

  a.bus.connect(false);
  assert.deepEqual(results(of(caller)), { "1": "invocation_stopped" });
  call(of(caller), "2");
  call(of(caller), "3", { function_id: "local" });
  assert.deepEqual(results(of(caller)), { "2": "function_not_found" });
  assert.equal(handed(of(near)).length, 1);

  clock.tick(1_000);
  assert.deepEqual(b.others, []);
  a.bus.connect(true);
  clock.tick(500);
  assert.deepEqual([a.others, b.others], [[b.name], [a.name]]);
  cluster.stop();
});

Deno.test("an engine that drains gets no more calls, and its running ones finish", () => {
  const { cluster, clock, a, b, worker, caller } = setup();
  const c = cluster.start();
  const other = c.worker("shop");
  other.say({ type: "registerfunction", id: "f" });
  clock.tick(300);
  for (let i = 0; i < 20; i++) call(of(caller), `${i}`);
  let drained = false;
  b.links.drain(() => drained = true);
  for (let i = 20; i < 40; i++) call(of(caller), `${i}`); // A does not know yet.
  clock.tick(5);
  assert.ok(drained);
  const before = handed(of(worker));

  for (let i = 40; i < 60; i++) call(of(caller), `${i}`);
  clock.tick(5);
  assert.deepEqual(handed(of(worker)), []);
  for (const { invocation_id } of [...before, ...handed(of(other))]) {
    answer(of(worker), invocation_id);
    answer(of(other), invocation_id);
  }
  clock.tick(5);

  assert.equal(before.length > 0, true);
  const values = Object.values(results(of(caller)));
  assert.equal(values.length, 60);
  assert.deepEqual(new Set(values), new Set(["done"]));
  b.links.stop();
  clock.tick(5);
  assert.deepEqual([...a.links.ends.keys()], ["reset"]);
  cluster.stop();
});

Deno.test("an engine that does not answer holds a drain up for a bounded time", () => {
  const { cluster, clock, network, a, b } = setup();
  network.fate = (from) => ({ delay_ms: 1, copies: from === a.bus ? 0 : 1 });
  let drained = false;

  b.links.drain(() => drained = true);
  clock.tick(DRAIN_TIMEOUT_MS - 1);
  assert.equal(drained, false);
  clock.tick(1);

  assert.equal(drained, true);
  cluster.stop();
});

Deno.test("functions come and go with their registration, and with the worker", () => {
  const { cluster, clock, a, b, worker } = setup();
  const ids = (): string[] =>
    a.router.directory.functions().filter(({ worker_ids }) => worker_ids.length > 0)
      .map(({ function_id }) => function_id).sort();

  worker.say({ type: "registerfunction", id: "g" });
  clock.tick(5);
  assert.deepEqual(ids(), ["f", "g"]);
  worker.say({ type: "unregisterfunction", id: "f" });
  clock.tick(5);
  assert.deepEqual(ids(), ["g"]);
  worker.cut();
  clock.tick(5);

  assert.deepEqual(ids(), []);
  assert.deepEqual(b.router.runningCalls, 0);
  cluster.stop();
});

Deno.test("a message of many parts arrives whole, and one beyond the limit ends the link", () => {
  const cluster = new FakeCluster();
  const [a, b] = [cluster.start(), cluster.start({ maxMessageBytes: 3_000_000 })];
  const worker = b.worker("shop");
  worker.say({ type: "registerfunction", id: "f" });
  const caller = a.worker("caller");
  cluster.clock.tick(10);
  const big = 'é\\"x'.repeat(400_000);

  call(of(caller), "1", { data: big });
  call(of(caller), "2", { data: 2 });
  cluster.clock.tick(5);
  const calls = handed(of(worker));
  assert.equal(calls[0]!.data, big);
  assert.equal(calls[1]!.data, 2);

  call(of(caller), "3", { data: "x".repeat(3_100_000) });
  cluster.clock.tick(5);
  assert.equal(results(of(caller))["3"], "invocation_stopped");
  assert.deepEqual([...b.links.ends.keys()], ["long"]);
  cluster.stop();
});

Deno.test("no more bytes are on their way than the window allows, and all of them arrive", () => {
  const { cluster, clock, network, worker, caller } = setup();
  let [flying, most] = [0, 0];
  network.fate = (_from, _to, data) => {
    if (readHead(data)?.kind === KIND.data) flying += data.length;
    most = Math.max(most, flying);
    return { delay_ms: 20, copies: 1 };
  };
  const data = "x".repeat(50_000);

  for (let i = 0; i < 400; i++) call(of(caller), `${i}`, { data });
  for (let i = 0; i < 60; i++) {
    flying = 0;
    clock.tick(20);
  }

  assert.equal(handed(of(worker)).length, 400);
  assert.ok(most > 3_000_000 && most < 6_000_000, `${most} bytes`);
  cluster.stop();
});

Deno.test("engines of another protocol are not linked, and both say so once", () => {
  for (const [first, second] of [[1, 99], [99, 1]] as const) { // Either has the smaller life.
    const cluster = new FakeCluster();
    const a = cluster.start({ protocol: first });
    const b = cluster.start({ protocol: second });
    cluster.clock.tick(3 * HELLO_MS);

    for (const [{ lines }, own, other] of [[a, first, second], [b, second, first]] as const) {
      const said = lines.filter((line) => line.includes("is not linked"));
      assert.equal(said.length, 1);
      const reason = `it speaks protocol ${other} of clusters, this engine ${own}; run engines`;
      assert.ok(said[0]!.includes(reason), said[0]);
    }
    assert.deepEqual([a.others, b.others], [[], []]);
    cluster.stop();
  }
});

Deno.test("an engine of another protocol that opens a link is refused, with a line", () => {
  const cluster = new FakeCluster();
  const a = cluster.start();
  const [life, name] = ["ffffffffffffffff", "new"];
  const packet = makePacket(KIND.open, 1, encodeHello({ life, name, version: "9.0.0" }, 99));
  const answers: BusAnswer[] = [];

  const subject = `E.test.to.${a.life}.${life}`;
  cluster.network.bus(name).request(subject, packet, 1_000, (answer) => answers.push(answer));
  cluster.clock.tick(100);

  const [answer] = answers;
  assert.ok(answer?.state === "answered" && answer.data.length > 0, "not refused");
  assert.equal(a.lines.filter((line) => line.includes("is not linked")).length, 1);
  assert.deepEqual(a.others, []);
  cluster.stop();
});

Deno.test("engines that keep state in different places are not linked, and both say so once", () => {
  const cluster = new FakeCluster();
  const a = cluster.start();
  const b = cluster.start({ log: "postgres" });
  cluster.clock.tick(3 * HELLO_MS);

  for (const { lines } of [a, b]) {
    const said = lines.filter((line) => line.includes("is not linked"));
    assert.equal(said.length, 1);
    assert.match(said[0]!, /it has log: \w+ below engine\.cluster, this engine \w+; one cluster/);
  }
  assert.deepEqual([a.others, b.others], [[], []]);
  cluster.stop();
});

Deno.test("bytes that are no packets and no hellos have no effect", () => {
  const { cluster, clock, network, a, b } = setup();
  const stranger = network.bus("stranger");
  const to = `E.test.to.${a.life}.${b.life}`;

  for (let length = 0; length < 64; length++) {
    const bytes = crypto.getRandomValues(new Uint8Array(length));
    stranger.publish("E.test.hello", bytes);
    stranger.publish(to, bytes);
    bytes[0] = 1 + length % 7;
    stranger.publish(to, bytes);
    clock.tick(200);
  }
  clock.tick(HELLO_MS);

  assert.deepEqual([a.others, b.others], [[b.name], [a.name]]);
  cluster.stop();
});

Deno.test("load that an engine reports steers calls of the others", () => {
  const { cluster, clock, worker, caller } = setup();
  const c = cluster.start();
  const other = c.worker("shop");
  other.say({ type: "registerfunction", id: "f" });
  const busy = c.worker("busy");
  clock.tick(500);
  for (let i = 0; i < 50; i++) call(of(busy), `${i}`); // Most go to the worker at C.
  clock.tick(500);
  handed(of(other));
  handed(of(worker));

  for (let i = 0; i < 12; i++) call(of(caller), `${i}`);
  clock.tick(5);

  assert.equal(handed(of(worker)).length, 12);
  assert.equal(handed(of(other)).length, 0);
  cluster.stop();
});

Deno.test("a link that flaps 100 times leaves nothing behind", () => {
  const { cluster, clock, network, a, b, worker, caller } = setup();
  const route = { type: "registertrigger", trigger_type: "http", function_id: "f" };
  worker.say({ ...route, id: "t" });
  worker.say({ type: "registertriggertype", id: "file", description: "Files" });
  for (let i = 0; i < 100; i++) {
    call(of(caller), `${i}`);
    network.fate = () => ({ delay_ms: 1, copies: i % 3 });
    if (i % 2 === 0) b.bus.connect(false);
    clock.tick(i * 13 % 700);
    network.fate = () => ({ delay_ms: 1, copies: 1 });
    b.bus.connect(true);
    clock.tick(HELLO_MS + 500);
    assert.deepEqual([a.others, b.others], [[b.name], [a.name]], `after flap ${i}`);
  }

  const { directory } = a.router;
  assert.deepEqual(directory.functions().filter(({ engine }) => engine).length, 1);
  assert.deepEqual(directory.triggers().map(({ id }) => id), [`${b.life}:t`]);
  assert.deepEqual(directory.triggerTypes().map(({ id }) => id), ["file"]);
  assert.equal(directory.workers().length, 2);
  assert.ok([...a.links.ends.values()].reduce((sum, count) => sum + count, 0) >= 50);
  b.kill();
  clock.tick(1_000);
  assert.deepEqual(directory.triggers(), []);
  assert.equal(directory.workers().length, 1);
  assert.equal(Object.keys(results(of(caller))).length, 100);
  cluster.stop();
});

Deno.test("32 idle engines send fewer than 2,000 messages a second", () => {
  const cluster = new FakeCluster();
  const engines = Array.from({ length: 32 }, () => cluster.start());
  cluster.clock.tick(5_000);
  for (const engine of engines) assert.equal(engine.others.length, 31);
  cluster.network.published = 0;

  cluster.clock.tick(10_000);

  const perSecond = cluster.network.published / 10; // With the answers to pings.
  assert.ok(perSecond < 2_000, `${perSecond} messages a second`);
  cluster.stop();
});
