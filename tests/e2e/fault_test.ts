/**
 * An engine in whose process something is thrown that no code awaits, one whose worker prints
 * without end, one whose log is not read, and one that has hardly any file descriptors.
 *
 * @module
 */
import assert from "node:assert/strict";
import { registerWorker } from "../../mod.ts";
import { EngineProcess, isAlive } from "../fakes/engine_process.ts";
import { until } from "../fakes/until.ts";

const ROOT = new URL("../../", import.meta.url).pathname;

/** The program with faults: SIGUSR1 is one of a connection, SIGUSR2 a mistake. */
const FAULTY = `
import { runCommandLine } from "${ROOT}cli/program.ts";
import { systemTerminal } from "${ROOT}cli/terminal.ts";
Deno.addSignalListener("SIGUSR1", () => {
  Promise.reject(new Error("Too many open files (os error 24)"));
  setTimeout(() => { throw new Deno.errors.BadResource("Bad resource ID"); });
  queueMicrotask(() => { throw new Deno.errors.ConnectionReset("reset"); });
});
Deno.addSignalListener("SIGUSR2", () => setTimeout(() => { undefined.field; }));
Deno.exit(await runCommandLine(Deno.args, systemTerminal()));
`;

async function startFaulty() {
  const program = await Deno.makeTempFile({ suffix: ".js" });
  await Deno.writeTextFile(program, FAULTY);
  const engine = await EngineProcess.start("", "", [
    "run",
    "-A",
    "--quiet",
    "--no-check",
    "--config",
    `${ROOT}deno.json`,
    program,
  ]);
  const end = async (): Promise<void> => {
    await engine[Symbol.asyncDispose]();
    await Deno.remove(program);
  };
  return { engine, [Symbol.asyncDispose]: end };
}

Deno.test("faults of connections end nothing", async () => {
  await using it = await startFaulty();
  const { engine } = it;
  await using worker = engine.connect();
  worker.registerFunction("echo::it", (payload) => payload);
  await until(() => worker.connectionState === "connected");

  for (let i = 0; i < 5; i++) Deno.kill(engine.pid, "SIGUSR1");
  await until(() => engine.stderr.includes("the engine keeps serving"));

  const { code, stderr } = await engine.command("trigger", "echo::it", "a=1");
  assert.equal(code, 0, stderr);
  assert.equal(engine.stderr.match(/the engine keeps serving/g)?.length, 1);
});

Deno.test("another error stops the engine in order, with exit code 1", async () => {
  await using it = await startFaulty();
  const { engine } = it;
  const manifest = "name: pid\nruntime:\n  kind: javascript\n  package_manager: deno\n";
  const imports = { "engine-sdk": "../../.engine/sdk/typescript/engine_sdk.js" };
  await engine.write("workers/pid/engine.worker.yaml", manifest);
  await engine.write("workers/pid/deno.json", JSON.stringify({ imports }));
  await engine.write(
    "workers/pid/main.js",
    `import { registerWorker } from "engine-sdk";
     const worker = registerWorker();
     worker.registerFunction("pid::get", () => Deno.pid);
     let begun = 0;
     worker.registerFunction("pid::begun", () => begun);
     worker.registerFunction("pid::slow", () => {
       begun++;
       return new Promise((done) => setTimeout(done, 1000, 7));
     });`,
  );
  const added = await engine.command("worker", "add", "./workers/pid", "--isolation", "process");
  assert.equal(added.code, 0, added.stderr);
  await using worker = engine.connect();
  const pid = await worker.trigger<Record<string, never>, number>({
    function_id: "pid::get",
    payload: {},
  });
  const state = { scope: "s", key: "k", value: 1 };
  await worker.trigger({ function_id: "state::set", payload: state });
  const slow = worker.trigger({ function_id: "pid::slow", payload: {} });
  slow.catch(() => {}); // It is awaited below.
  await until(async () => {
    return await worker.trigger({ function_id: "pid::begun", payload: {} }) === 1;
  });

  const status = await engine.kill("SIGUSR2");

  assert.equal(status.code, 1);
  assert.match(engine.stderr, /unhandled error; the engine stops/);
  assert.match(engine.stderr, /Stopped after an error/);
  assert.equal(await slow, 7); // It was drained.
  await until(() => !isAlive(pid));
  await engine.start();
  const { stdout } = await engine.command("trigger", "state::get", "scope=s", "key=k");
  assert.equal(stdout, "1\n");
});

/**
 * Slowest call of 99 %, and of all, in milliseconds. Alone on two cores 17 and 50 were measured; the gate
 * runs other tests beside it. Without the budget no call ended within 30 s.
 */
const CANARY_P99_MS = 1_000;
const CANARY_MAX_MS = 3_000;

for (
  const [what, start] of [
    ["lines", "exec yes"],
    ["empty lines", 'exec yes ""'],
    ["one line without end", "exec cat /dev/zero"],
  ] as const
) {
  Deno.test(`a worker that prints ${what} slows no call, and fills no memory`, async () => {
    await using engine = await EngineProcess.start();
    const manifest = "name: noisy\nruntime:\n  kind: javascript\n  package_manager: deno\n";
    await engine.write(
      "workers/noisy/engine.worker.yaml",
      `${manifest}scripts:\n  start: '${start}'\n`,
    );
    await engine.write("workers/noisy/main.js", "");
    await using canary = engine.connect();
    canary.registerFunction("canary::sing", (payload) => payload);
    await canary.trigger({ function_id: "canary::sing", payload: {} });

    const words = ["./workers/noisy", "--isolation", "process", "--timeout", "0"];
    const added = await engine.command("worker", "add", ...words);
    assert.equal(added.code, 0, added.stderr);
    const log = `${engine.directory}/.engine/logs/noisy.log`;
    await until(async () => (await Deno.stat(log)).size > 100_000);
    const times: number[] = [];
    for (const end = performance.now() + 3_000; performance.now() < end;) {
      const began = performance.now();
      await canary.trigger({ function_id: "canary::sing", payload: {} });
      times.push(performance.now() - began);
      await new Promise((resolve) => setTimeout(resolve, 2));
    }

    times.sort((a, b) => a - b);
    const p99 = times[Math.floor(times.length * 0.99)]!;
    assert.ok(p99 <= CANARY_P99_MS && times.at(-1)! <= CANARY_MAX_MS, `${p99} ${times.at(-1)}`);
    const status = await Deno.readTextFile(`/proc/${engine.pid}/status`);
    assert.ok(Number(/VmRSS:\s+(\d+)/.exec(status)![1]) < 512 * 1024, status);
    assert.equal((await Deno.stat(log)).mode! & 0o777, 0o600);
    for (const folder of ["logs", "run"]) {
      const { mode } = await Deno.stat(`${engine.directory}/.engine/${folder}`);
      assert.equal(mode! & 0o777, 0o700, folder);
    }
  });
}

/** Opens idle connections until the other side takes no more; those that it closes count. */
async function exhaust(port: number, count: number): Promise<Deno.Conn[]> {
  const all = await Promise.all(
    Array.from({ length: count }, () => {
      return Deno.connect({ hostname: "127.0.0.1", port }).catch(() => undefined);
    }),
  );
  return all.filter((connection) => connection !== undefined);
}

Deno.test("idle sockets on every port leave descriptors for state, config and workers", async () => {
  await using engine = await EngineProcess.start(
    "  - name: engine-http\n    config: { port: 0 }\n" +
      "  - name: engine-console\n    config: { port: 0 }\n",
    "",
    undefined,
    { descriptors: 256 },
  );
  await until(() => engine.stderr.includes('"engine-console"'));
  const info = await engine.command("trigger", "engine::supervisor::info", "--json");
  const { endpoints } = JSON.parse(info.stdout) as { endpoints: { name: string; url: string }[] };
  const ports = endpoints.map(({ url }) => Number(new URL(url).port));
  assert.equal(ports.length, 3);
  const worker = engine.connect();
  await worker.trigger({ function_id: "state::get", payload: { scope: "s", key: "k" } });

  const idle = (await Promise.all(ports.map((port) => exhaust(port, 300)))).flat();
  await new Promise((resolve) => setTimeout(resolve, 300)); // They are accepted meanwhile.

  const began = performance.now();
  const state = { scope: "s", key: "k", value: 1 };
  await worker.trigger({ function_id: "state::set", payload: state });
  const manifest = "name: late\nruntime:\n  kind: javascript\n  package_manager: deno\n";
  await engine.write("workers/late/engine.worker.yaml", `${manifest}isolation: process\n`);
  await engine.write(
    "workers/late/main.js",
    'import { registerWorker } from "engine-sdk";\n' +
      'registerWorker().registerFunction("late::here", () => "yes");',
  );
  const imports = { "engine-sdk": "../../.engine/sdk/typescript/engine_sdk.js" };
  await engine.write("workers/late/deno.json", JSON.stringify({ imports }));
  const config = await Deno.readTextFile(`${engine.directory}/config.yaml`);
  await engine.write("config.yaml", `${config}  - name: late\n    path: ./workers/late\n`);
  await until(() => engine.stderr.includes("config.yaml applied"), () => engine.stderr);
  // Its program runs; to connect it may have to wait until idle sockets are closed.
  await until(async () => {
    const status = await worker.trigger<{ name: string }, { pid: number | null; reason: string }>({
      function_id: "engine::supervisor::status",
      payload: { name: "late" },
    });
    return status.pid !== null;
  }, () => engine.stderr);
  // Not only when the heads that never came have timed out.
  assert.ok(performance.now() - began < 8_000);
  for (const connection of idle) connection.close();
  await until(() => worker.trigger({ function_id: "late::here", payload: {} }).then(() => true));
  await worker.shutdown();
  assert.doesNotMatch(engine.stderr, /Uncaught|unhandled error/);
});

Deno.test("a worker that is stopped by a signal is suspect, wherever workers are shown", async () => {
  await using engine = await EngineProcess.start("", "  heartbeat_ms: 200\n");
  const program = `${engine.directory}/frozen.js`;
  await Deno.writeTextFile(
    program,
    `import { registerWorker } from "${ROOT}mod.ts";
     registerWorker("${engine.url}", { workerName: "frozen" })
       .registerFunction("frozen::call", () => 1);`,
  );
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--quiet", "--no-check", "--config", `${ROOT}deno.json`, program],
    stdout: "null",
    stderr: "null",
  }).spawn();
  const isListed = async (): Promise<boolean> => {
    const { stdout } = await engine.command("worker", "list");
    return /^suspect: frozen \(127\.0\.0\.1\) does not answer$/m.test(stdout);
  };
  const called = () => engine.command("trigger", "frozen::call").then(({ code }) => code === 0);
  await until(called);
  assert.equal(await isListed(), false);

  Deno.kill(child.pid, "SIGSTOP");
  await until(isListed);

  const doctor = await engine.command("doctor");
  assert.match(doctor.stdout, /warn +workers answer +1 worker left a ping unanswered: frozen/);
  const top = await engine.command("top", "--once");
  assert.match(top.stdout, /^frozen \(suspect\)/m);
  Deno.kill(child.pid, "SIGCONT");
  await until(async () => !await isListed());
  assert.ok(await called());
  child.kill();
  await child.status;
});

Deno.test("an engine whose log is not read serves on", async () => {
  const directory = await Deno.makeTempDir();
  const config = `${directory}/config.yaml`;
  await Deno.writeTextFile(config, "engine:\n  port: 0\nlog:\n  level: debug\n");
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--quiet", "--no-check", `${ROOT}cli/main.ts`, "--config", config],
    stdin: "null",
    stdout: "piped",
    stderr: "piped", // Never read: the pipe takes 64 KiB.
  }).spawn();
  try {
    let said = "";
    const reader = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
    const url = (): string | undefined => /workers +(ws:\S+)\n/.exec(said)?.[1];
    for (let part = await reader.read(); !part.done && !url(); part = await reader.read()) {
      said += part.value;
      if (url()) break;
    }
    await reader.cancel();
    await using worker = registerWorker(url()!);
    await until(() => worker.connectionState === "connected");

    // The log has two lines of over 100 bytes for each.
    for (let round = 0; round < 10; round++) {
      const sockets = Array.from({ length: 50 }, () => new WebSocket(url()!));
      await until(() => sockets.every(({ readyState }) => readyState === WebSocket.OPEN));
      for (const socket of sockets) socket.close();
    }

    const payload = { include_internal: true };
    const call = { function_id: "engine::functions::list", payload, timeout_ms: 20_000 };
    const { functions } = await worker.trigger<object, { functions: unknown[] }>(call);
    assert.ok(functions.length > 0);
  } finally {
    child.kill("SIGKILL");
    await child.stderr.cancel();
    await child.status;
    await Deno.remove(directory, { recursive: true });
  }
});
