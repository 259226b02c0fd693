/**
 * An engine whose process has no file descriptor left when clients dial: each port logs that once,
 * and serves again when there are some.
 *
 * The ports' shares leave a reserve, so a program around the engine takes all descriptors on a
 * signal, and gives them back on another one.
 *
 * @module
 */
import assert from "node:assert/strict";
import { EngineProcess } from "../fakes/engine_process.ts";
import { until } from "../fakes/until.ts";

const ROOT = new URL("../../", import.meta.url).pathname;
const DESCRIPTORS = 160;

/**
 * SIGUSR2 takes every descriptor there is, again and again; the next one gives them back. (SIGUSR1
 * opens Deno's inspector.)
 */
const GREEDY = `
import { runCommandLine } from "${ROOT}cli/program.ts";
import { systemTerminal } from "${ROOT}cli/terminal.ts";
const terminal = systemTerminal();
const out = terminal.out;
terminal.out = (text) => {
  console.error("started"); // The first output comes when all has started.
  out.call(terminal, text);
};
const files = [];
let timer;
const take = () => {
  try {
    for (;;) files.push(Deno.openSync("/dev/null"));
  } catch {
    // None is left.
  }
};
Deno.addSignalListener("SIGUSR2", () => {
  if (timer === undefined) return void (timer = setInterval(take, 1));
  clearInterval(timer);
  for (const file of files.splice(0)) file.close();
});
Deno.exit(await runCommandLine(Deno.args, terminal));
`;

/** What a port logs that cannot accept. */
const LOGGED: Readonly<Record<string, RegExp>> = {
  worker: /"the worker port cannot accept a connection".*Too many open files/,
  http: /"a port cannot take all connections","worker":"engine-http".*Too many open files/,
  console: /"a port cannot take all connections","worker":"engine-console".*Too many open files/,
};
/** A port reports the same no sooner than after this time. */
const REPORT_MS = 10_000;

/** Opens a socket and sends the head of a request; the port may be unable to take it. */
async function ask(port: number): Promise<Deno.Conn | undefined> {
  // Refused while a server is opened again.
  const socket = await Deno.connect({ hostname: "127.0.0.1", port }).catch(() => undefined);
  const head = "GET /none HTTP/1.1\r\nhost: localhost\r\n\r\n";
  await socket?.write(new TextEncoder().encode(head)).catch(() => {});
  return socket;
}

for (const transport of ["raw", "deno-serve"]) {
  Deno.test(`${transport}: ports without descriptors log once, keep what is open, and recover`, async () => {
    const program = await Deno.makeTempFile({ suffix: ".js" });
    await Deno.writeTextFile(program, GREEDY);
    await using _removed = { [Symbol.asyncDispose]: () => Deno.remove(program) };
    const words = ["run", "-A", "--quiet", "--no-check", "--config", `${ROOT}deno.json`, program];
    await using engine = await EngineProcess.start(
      "  - name: engine-http\n    config: { port: 0 }\n" +
        "  - name: engine-console\n    config: { port: 0 }\n",
      `  transport: ${transport}\n`,
      words,
      { descriptors: DESCRIPTORS },
    );
    await using worker = engine.connect("here before");
    worker.registerFunction("echo::it", (payload) => payload);
    const echo = (n: number) => worker.trigger({ function_id: "echo::it", payload: { n } });
    const ports: Record<string, number> = { worker: engine.port };
    await until(async () => {
      const info = await worker.trigger<object, { endpoints: { name: string; url: string }[] }>({
        function_id: "engine::supervisor::info",
        payload: {},
      });
      for (const { name, url } of info.endpoints) {
        if (name === "http" || name === "console") ports[name] = Number(new URL(url).port);
      }
      return Object.keys(ports).length === 3 && engine.stderr.includes("started");
    }, () => engine.stderr);

    Deno.kill(engine.pid, "SIGUSR2");
    const began = performance.now();
    const waiting: Deno.Conn[] = [];
    for (const [name, port] of Object.entries(ports)) {
      await until(async () => {
        const socket = await ask(port);
        if (socket) waiting.push(socket);
        return LOGGED[name]!.test(engine.stderr);
      }, () => `${name}: ${engine.stderr}`);
    }
    assert.deepEqual(await echo(1), { n: 1 });
    Deno.kill(engine.pid, "SIGUSR2");

    for (const [name, port] of Object.entries(ports)) {
      await until(async () => {
        const response = await fetch(`http://127.0.0.1:${port}/none`);
        await response.body?.cancel();
        return response.status > 0;
      }, name);
      const times = engine.stderr.split("\n").filter((line) => LOGGED[name]!.test(line)).length;
      const most = 1 + Math.floor((performance.now() - began) / REPORT_MS);
      assert.ok(times <= most, `${name} logs ${times} times: ${engine.stderr}`);
    }
    await using late = engine.connect("late");
    assert.deepEqual(await late.trigger({ function_id: "echo::it", payload: 2 }), 2);
    assert.deepEqual(await echo(3), { n: 3 });
    assert.doesNotMatch(engine.stderr, /Uncaught|unhandled error/);
    for (const socket of waiting) socket.close();
  });
}
