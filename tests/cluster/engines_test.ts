/**
 * Engines that are processes, on real nats-servers: calls, HTTP, and how soon callers learn that
 * another engine, or NATS, is gone.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { ChannelReader, Worker } from "../../mod.ts";
import type { EngineProcess } from "../fakes/engine_process.ts";
import { freePort } from "../fakes/engine_process.ts";
import { until } from "../fakes/until.ts";
import { hang, startEngine, startPair, untilCallable } from "./cluster_process.ts";
import { startNats, withoutNats } from "./servers.ts";

const options = { ignore: withoutNats, sanitizeOps: false, sanitizeResources: false };
const CALLS = 50;

/** A worker whose calls hang, or are answered. */
function offer(engine: EngineProcess): Worker {
  const worker = engine.connect("w");
  worker.registerFunction("w::echo", (payload: unknown) => payload);
  worker.registerFunction("w::hang", () => new Promise(() => {}));
  return worker;
}

/** How long it takes until calls that hang have ended, after `act`. */
async function endsAfter(
  caller: Worker,
  act: () => unknown,
): Promise<{ ms: number; codes: string }> {
  const { codes, all } = hang(caller, "w::hang", CALLS);
  await untilCallable(caller, "w::echo"); // Behind them on every link.
  const start = performance.now();
  await act();
  await all;
  return { ms: performance.now() - start, codes: [...codes].join() };
}

Deno.test(
  "callers learn within half a second that another engine was killed",
  options,
  async () => {
    await using nats = await startNats({ jetstream: false });
    await using a = await startEngine("a", { nats: nats.urls });
    await using b = await startEngine("b", { nats: nats.urls });
    const [worker, caller] = [offer(b), a.connect("caller")];
    const times: number[] = [];
    for (let i = 0; i < 3; i++) {
      await untilCallable(caller, "w::echo");

      const { ms, codes } = await endsAfter(caller, () => b.kill("SIGKILL"));

      assert.equal(codes, "invocation_stopped");
      times.push(ms);
      const gone = await caller.trigger({ function_id: "w::echo", payload: 1 }).catch((e) =>
        e.code
      );
      assert.equal(gone, "function_not_found");
      await b.start(); // Its worker connects again by itself.
    }
    await untilCallable(caller, "w::echo");

    // The bound is for a machine that does nothing else.
    assert.ok(times.sort((x, y) => x - y)[1]! < 1_500, `${times} ms`);
    await Promise.all([worker.shutdown(), caller.shutdown()]);
  },
);

Deno.test("callers learn within two seconds that another engine hangs", options, async () => {
  await using nats = await startNats({ jetstream: false });
  await using a = await startEngine("a", { nats: nats.urls });
  await using b = await startEngine("b", { nats: nats.urls });
  const [worker, caller] = [offer(b), a.connect("caller")];
  await untilCallable(caller, "w::echo");

  const { ms, codes } = await endsAfter(caller, () => Deno.kill(b.pid, "SIGSTOP"));
  Deno.kill(b.pid, "SIGCONT");

  assert.equal(codes, "invocation_stopped");
  assert.ok(ms > 500 && ms < 6_000, `${ms} ms`);
  await untilCallable(caller, "w::echo");
  await Promise.all([worker.shutdown(), caller.shutdown()]);
});

Deno.test("without NATS local calls go on, and with it all of them again", options, async () => {
  await using nats = await startNats({ jetstream: false });
  await using a = await startEngine("a", { nats: nats.urls });
  await using b = await startEngine("b", { nats: nats.urls });
  const [worker, caller] = [offer(b), a.connect("caller")];
  caller.registerFunction("a::local", () => "here");
  await untilCallable(caller, "w::echo");

  const { ms, codes } = await endsAfter(caller, () => nats.nodes[0]!.kill());
  assert.equal(codes, "invocation_stopped");
  assert.ok(ms < 5_000, `${ms} ms`);
  for (let i = 0; i < 100; i++) {
    assert.equal(await caller.trigger({ function_id: "a::local", payload: i }), "here");
  }
  await assert.rejects(caller.trigger({ function_id: "w::echo", payload: 1 }), {
    code: "function_not_found",
    details: { cluster: "away", caller: "caller" },
  });
  await nats.nodes[0]!.start();

  await untilCallable(caller, "w::echo");
  await Promise.all([worker.shutdown(), caller.shutdown()]);
});

Deno.test(
  "when the NATS node of an engine dies, its link goes over another one",
  options,
  async () => {
    await using nats = await startNats({ count: 3 });
    const [first, second, third] = nats.urls as [string, string, string];
    await using a = await startEngine("a", { nats: [first, second] });
    await using b = await startEngine("b", { nats: [third, second] });
    const [worker, caller] = [offer(b), a.connect("caller")];
    await untilCallable(caller, "w::echo");

    // B is on either of its nodes.
    const port = Number(/connected to NATS.*?127\.0\.0\.1:(\d+)/.exec(b.stderr)![1]);
    const node = nats.nodes.find((one) => one.port === port)!;

    const { codes } = await endsAfter(caller, () => node.kill());

    assert.equal(codes, "invocation_stopped");
    await untilCallable(caller, "w::echo");
    await Promise.all([worker.shutdown(), caller.shutdown()]);
  },
);

Deno.test(
  "a restart of an engine fails no call of a function that another one offers",
  options,
  async () => {
    await using nats = await startNats({ jetstream: false });
    const settings = "    far_calls: 0\n";
    await using a = await startEngine("a", { nats: nats.urls });
    await using b = await startEngine("b", { nats: nats.urls, settings });
    await using c = await startEngine("c", { nats: nats.urls, settings });
    const workers = [b, c].map((engine) => {
      const worker = engine.connect("w");
      worker.registerFunction("w::work", async () => {
        await new Promise((resolve) => setTimeout(resolve, 5));
        return engine === b ? "b" : "c";
      });
      return worker;
    });
    const caller = a.connect("caller");
    const ran = { b: 0, c: 0 };
    const failed: string[] = [];
    const calls: Promise<unknown>[] = [];
    const call = (): unknown =>
      calls.push(
        caller.trigger({ function_id: "w::work", payload: 1, timeoutMs: 20_000 }).then(
          (by) => ran[by as "b" | "c"]++,
          (thrown) => failed.push(`${thrown.code} ${thrown.message}`),
        ),
      );
    await until(async () => {
      await Promise.all(Array.from({ length: 20 }, call));
      return ran.b > 0 && ran.c > 0;
    });
    failed.length = 0;

    const timer = setInterval(call, 2); // 500 a second.
    for (const engine of [b, c, b]) {
      await engine.kill("SIGTERM");
      await engine.start();
      ran.b = ran.c = 0;
      await until(() => ran.b > 20 && ran.c > 20, () => JSON.stringify({ ran, failed }));
    }
    clearInterval(timer);
    await Promise.all(calls);

    assert.ok(calls.length > 500, `${calls.length} calls`);
    assert.deepEqual(failed, []);
    await Promise.all([...workers, caller].map((worker) => worker.shutdown()));
  },
);

Deno.test("every engine serves every route, as long as its worker is there", options, async () => {
  await using nats = await startNats({ jetstream: false });
  await using pair = await startPair("engine-http", { nats: nats.urls });
  const { a, ports } = pair;
  const status = async (port: number): Promise<string> => {
    const answer = await fetch(`http://127.0.0.1:${port}/hello/you`).catch(() => undefined);
    return answer ? `${answer.status} ${(await answer.text()).slice(0, 30)}` : "none";
  };
  const both = (expected: RegExp): Promise<void> =>
    until(async () => (await Promise.all(ports.map(status))).every((text) => expected.test(text)));
  const connect = (): Worker => {
    const worker = a.connect("w");
    worker.registerFunction("w::hello", (request: { path_params: { name: string } }) => {
      return { status_code: 200, body: { hello: request.path_params.name } };
    });
    const config = { api_path: "/hello/:name", http_method: "GET" };
    worker.registerTrigger({ type: "http", function_id: "w::hello", config });
    return worker;
  };

  const worker = connect();
  await both(/^200 \{"hello":"you"\}/);
  await worker.shutdown();
  await both(/^404/);
  const again = connect();
  await both(/^200/);
  await a.kill("SIGKILL");
  await until(async () => /^404/.test(await status(ports[1]!)));

  await again.shutdown();
});

Deno.test(
  "an engine shows what is at the others: workers, functions, traces, links",
  options,
  async () => {
    await using nats = await startNats({ jetstream: false });
    await using a = await startEngine("a", { nats: nats.urls });
    await using b = await startEngine("b", { nats: nats.urls });
    const [worker, caller] = [offer(b), a.connect("caller")];
    const ask = <Answer>(function_id: string, payload: unknown = {}): Promise<Answer> =>
      caller.trigger<unknown, Answer>({ function_id, payload });
    await untilCallable(caller, "w::echo");
    const [trace_id, span_id] = ["5".repeat(32), "6".repeat(16)];
    worker.registerFunction("w::traced", () => 1);
    caller.registerFunction("a::begin", () => caller.trigger({ function_id: "w::traced" }));
    await untilCallable(caller, "w::traced");
    await caller.trigger(
      {
        function_id: "a::begin",
        traceparent: `00-${trace_id}-${span_id}-01`,
      } as Parameters<Worker["trigger"]>[0],
    );

    const { engines } = await ask<{ engines: Record<string, unknown>[] }>(
      "engine::cluster::engines",
    );
    assert.deepEqual(engines.map(({ name, state }) => [name, state]), [["a", "here"], [
      "b",
      "linked",
    ]]);
    const { functions } = await ask<{ functions: Record<string, unknown>[] }>(
      "engine::functions::list",
    );
    const shown = functions.map(({ function_id, engine }) => `${function_id} ${engine ?? "here"}`);
    assert.ok(shown.includes("w::echo b") && shown.includes("a::begin here"), `${shown}`);
    const { workers } = await ask<{ workers: Record<string, unknown>[] }>("engine::workers::list");
    const found = workers.filter(({ name }) => name === "w" || name === "caller");
    assert.deepEqual(found.map(({ name, engine }) => [name, engine]), [["caller", undefined], [
      "w",
      "b",
    ]]);

    interface Span {
      readonly name: string;
      readonly engine?: string;
      readonly children: Span[];
    }
    const flat = (spans: Span[]): Span[] => spans.flatMap((one) => [one, ...flat(one.children)]);
    await until(async () => {
      const { roots } = await ask<{ roots: Span[] }>("engine::traces::tree", { trace_id });
      const spans = flat(roots);
      const isOne = roots.length === 1;
      return isOne &&
        spans.some(({ engine, name }) => engine === "b" && name.includes("w::traced"));
    });

    const page = async (path: string): Promise<string> =>
      await (await fetch(`http://127.0.0.1:${a.port}${path}`)).text();
    const metrics = await page("/metrics");
    assert.match(metrics, /engine_cluster_engines 2/);
    assert.match(metrics, /engine_cluster_link_calls_total\{engine="b",.*direction="out"\} [1-9]/);
    await until(async () =>
      /engine_cluster_link_rtt_seconds\{engine="b"/.test(await page("/metrics"))
    );
    assert.equal(JSON.parse(await page("/readyz")).cluster, "linked");
    await nats.nodes[0]!.kill();
    await until(async () => {
      const { ready, cluster } = JSON.parse(await page("/readyz"));
      return ready && cluster === "away";
    });
    await Promise.all([worker.shutdown(), caller.shutdown()]);
  },
);

Deno.test(
  "channels and streams of HTTP work where their ends are at two engines",
  options,
  async () => {
    await using nats = await startNats({ jetstream: false });
    const port = freePort();
    const workers = `  - name: engine-http\n    config: { port: ${port} }\n`;
    await using a = await startEngine("a", { nats: nats.urls, workers });
    await using b = await startEngine("b", { nats: nats.urls });
    const worker = b.connect("w");
    worker.registerFunction("w::count", async ({ reader }: { reader: ChannelReader }) => {
      let bytes = 0;
      for await (const chunk of reader) bytes += chunk.length;
      return bytes;
    });
    worker.registerFunction("w::upload", async (request: { request_body: ChannelReader }) => {
      let bytes = 0;
      for await (const chunk of request.request_body) bytes += chunk.length;
      return { status_code: 200, body: { bytes } };
    });
    worker.registerTrigger({
      type: "http",
      function_id: "w::upload",
      config: { api_path: "/upload", http_method: "POST" },
    });
    const caller = a.connect("caller");
    await until(async () => {
      const { functions } = await caller.trigger<unknown, { functions: { function_id: string }[] }>(
        {
          function_id: "engine::functions::list",
          payload: {},
        },
      );
      return functions.some(({ function_id }) => function_id === "w::upload");
    });

    const { writer, reader } = await caller.createChannel();
    const counted = caller.trigger({ function_id: "w::count", payload: { reader } });
    for (let i = 0; i < 100; i++) await writer.write(new Uint8Array(100_000));
    await writer.close();
    assert.equal(await counted, 10_000_000);

    const body = new Uint8Array(5_000_000);
    const answer = await fetch(`http://127.0.0.1:${port}/upload`, {
      method: "POST",
      headers: { "content-type": "application/octet-stream" },
      body,
    });
    assert.deepEqual(await answer.json(), { bytes: 5_000_000 });
    await Promise.all([worker.shutdown(), caller.shutdown()]);
  },
);
