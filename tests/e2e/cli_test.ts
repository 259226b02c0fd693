/**
 * The program `engine` as people run it: real processes, real ports, a real worker.
 *
 * @module
 */
import assert from "node:assert/strict";
import { EngineProcess, isAlive } from "../fakes/engine_process.ts";
import { until } from "../fakes/until.ts";

const MAIN = new URL("../../cli/main.ts", import.meta.url).pathname;

interface Result {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Starts `engine` in a directory; the environment names no engine. */
function spawn(directory: string, ...args: string[]): Deno.ChildProcess {
  return new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--quiet", MAIN, ...args],
    cwd: directory,
    env: { NO_COLOR: "1", ENGINE_URL: "", ENGINE_TOKEN: "" },
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
}

async function run(directory: string, ...args: string[]): Promise<Result> {
  return resultOf(await spawn(directory, ...args).output());
}

function resultOf({ code, stdout, stderr }: Deno.CommandOutput): Result {
  const text = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);
  return { code, stdout: text(stdout), stderr: text(stderr) };
}

async function makeDirectory() {
  const path = await Deno.realPath(await Deno.makeTempDir({ prefix: "engine-cli-" }));
  return { path, [Symbol.asyncDispose]: () => Deno.remove(path, { recursive: true }) };
}

const MANIFEST = "name: greeter\nruntime:\n  kind: javascript\n  package_manager: deno\n";
const WORKER = `
import { registerWorker } from "engine-sdk";
const worker = registerWorker();
const payload = { type: "object", properties: { name: { type: "string", default: "you" } } };
worker.registerFunction("greet::hello", ({ name = "you" }) => {
  console.log("greeting \\u001b[31m" + name);
  return { text: "Hello, " + name };
}, { description: "Greets by name", request_format: payload });
worker.registerFunction("greet::fail", () => {
  throw Object.assign(new Error("No more greetings"), { code: "sold_out", details: { left: 0 } });
});
worker.registerFunction("greet::wait", () => new Promise(() => {}));
`;

/** An engine, and a worker's directory beside its config.yaml that is not added yet. */
async function setup(manifest = MANIFEST, source = WORKER): Promise<EngineProcess> {
  const engine = await EngineProcess.start();
  await engine.write("workers/greeter/engine.worker.yaml", manifest);
  await engine.write("workers/greeter/main.js", source);
  const imports = { "engine-sdk": "../../.engine/sdk/typescript/engine_sdk.js" };
  await engine.write("workers/greeter/deno.json", JSON.stringify({ imports }));
  return engine;
}

function add(engine: EngineProcess, ...more: string[]) {
  return engine.command("worker", "add", "./workers/greeter", "--isolation", "process", ...more);
}

Deno.test("a worker's life: add, call, look, stop, start, remove", async (t) => {
  await using engine = await setup();

  await t.step("worker add writes config.yaml and ends with one line", async () => {
    const { code, stdout, stderr } = await add(engine);
    assert.equal(code, 0, stderr);
    assert.match(stdout, /^greeter is ready: pid \d+, [\d.]+ m?s, (greet::\w+(, |\n)){3}$/);
    assert.match(stderr, /^greeter {2}[\d.]+ m?s {2}added to .*config\.yaml$/m);
    const config = await Deno.readTextFile(`${engine.directory}/config.yaml`);
    assert.match(config, /- name: greeter\n +path: \.\/workers\/greeter\n +isolation: process/);
  });

  await t.step("worker add again says that it is there", async () => {
    const { code, stderr } = await add(engine);
    assert.equal(code, 0, stderr);
    assert.match(stderr, /^greeter {2}[\d.]+ m?s {2}is in .*config\.yaml already$/m);
  });

  await t.step("trigger prints the result, and nothing else, on standard output", async () => {
    const result = await engine.command("trigger", "greet::hello", "name=Ann");
    assert.deepEqual(result, { code: 0, stdout: '{ "text": "Hello, Ann" }\n', stderr: "" });
  });

  await t.step("trigger FUNCTION --help shows what the function takes", async () => {
    const { code, stdout } = await engine.command("trigger", "greet::hello", "--help");
    assert.equal(code, 0);
    assert.match(stdout, /^greet::hello\n {2}Greets by name\n/);
    assert.match(stdout, /^ {2}name {2}string {2}optional {2}\(default "you"\)$/m);
  });

  await t.step("a call that fails ends with 1 and the handler's own code", async () => {
    const { code, stdout, stderr } = await engine.command("trigger", "greet::fail");
    assert.deepEqual([code, stdout], [1, ""]);
    const [stack, rest] = [
      /^ {2}Stack trace of greet::fail:\n(?: {4}.*\n)+/m,
      /\/main\.js:\d+:\d+\n$/,
    ];
    assert.match(stderr.match(stack)?.[0] ?? "", rest);
    assert.match(
      stderr.replace(stack, ""),
      /^error: sold_out: No more greetings\n {2}\{ "left": 0 \}\nwhy: engine why \S+\n$/,
    );
  });

  await t.step("a payload that does not fit the schema ends with 1 and the place", async () => {
    const { code, stderr } = await engine.command("trigger", "greet::hello", "name=5");
    assert.equal(code, 1);
    assert.match(stderr, /^error: invalid_payload: /);
    assert.match(stderr, /^ {2}\/name: must be string$/m);
  });

  await t.step("an unknown function ends with 1, and close ids are named", async () => {
    const { code, stderr } = await engine.command("trigger", "greet::helo");
    assert.equal(code, 1);
    assert.match(stderr, /Function greet::helo not found\n {2}Did you mean greet::hello/);
  });

  await t.step("a call that takes too long ends with 1", async () => {
    const { code, stderr } = await engine.command("trigger", "greet::wait", "--timeout-ms", "200");
    assert.equal(code, 1);
    assert.match(stderr, /^error: (timeout|TIMEOUT): .*\n.*--timeout-ms/);
  });

  await t.step("functions, worker list and worker status show it", async () => {
    const functions = await engine.command("functions", "greet");
    assert.match(functions.stdout, /^greet::hello {2}greeter {2,}Greets by name$/m);
    const list = await engine.command("worker", "list");
    assert.match(
      list.stdout,
      /^greeter +ready +\d+[sm] +1\/1 +\d+ +0 +3 +\S+( MiB)? +\S+ +process$/m,
    );
    const workers = JSON.parse((await engine.command("worker", "list", "--json")).stdout);
    assert.ok(workers.some(({ name }: { name: string }) => name === "engine-state"));
    const status = await engine.command("worker", "status", "greeter", "--json");
    assert.equal(status.code, 0, status.stderr);
    assert.equal(JSON.parse(status.stdout).state, "ready");
  });

  await t.step("worker logs shows what it printed", async () => {
    await until(async () => {
      const { stdout } = await engine.command("worker", "logs", "greeter", "--tail", "50");
      return stdout.includes("greeting") && stdout.includes("Ann");
    });
  });

  await t.step("worker stop ends it, worker start brings it back", async () => {
    const { stdout } = await engine.command("worker", "status", "greeter", "--json");
    const stopped = await engine.command("worker", "stop", "greeter");
    assert.match(stopped.stdout, /^greeter is stopped/);
    assert.equal(isAlive(JSON.parse(stdout).pid), false);
    assert.equal((await engine.command("trigger", "greet::hello")).code, 1);
    const started = await engine.command("worker", "start", "greeter");
    assert.match(started.stdout, /^greeter is ready: pid \d+/);
    assert.equal((await engine.command("trigger", "greet::hello")).code, 0);
  });

  await t.step("worker restart brings another process", async () => {
    const before = await engine.command("worker", "status", "greeter", "--json");
    const { code, stdout, stderr } = await engine.command("worker", "restart", "greeter");
    assert.equal(code, 0, stderr);
    assert.ok(!stdout.includes(`pid ${JSON.parse(before.stdout).pid},`), stdout);
  });

  await t.step("worker remove takes it out of config.yaml", async () => {
    const removed = await engine.command("worker", "remove", "greeter");
    assert.equal(removed.code, 0, removed.stderr);
    const config = await Deno.readTextFile(`${engine.directory}/config.yaml`);
    assert.doesNotMatch(config, /greeter/);
    const { code, stderr } = await engine.command("worker", "status", "greeter");
    assert.equal(code, 1);
    assert.match(stderr, /^error: NOT_FOUND: /);
  });
});

Deno.test("worker logs -f goes on until it is interrupted, and ends with 0", async () => {
  await using engine = await setup();
  assert.equal((await add(engine)).code, 0);
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--quiet", MAIN, "worker", "logs", "greeter", "-f", "--tail", "0"],
    env: { ENGINE_URL: engine.url },
    stdin: "null",
    stdout: "piped",
    stderr: "null",
  }).spawn();
  let stdout = "";
  const reading = (async () => {
    for await (const text of child.stdout.pipeThrough(new TextDecoderStream())) stdout += text;
  })();
  let calls = 0;
  await using worker = engine.connect();
  const timer = setInterval(() => {
    const payload = { name: `number ${calls++}` };
    worker.trigger({ function_id: "greet::hello", payload }).catch(() => {});
  }, 50);

  await until(() => (stdout.match(/number \d+\n/g) ?? []).length > 5);
  clearInterval(timer);
  child.kill("SIGINT");
  const { code } = await child.status;
  await reading;

  assert.equal(code, 0);
  const seen = [...stdout.matchAll(/number (\d+)$/gm)].map((match) => Number(match[1]));
  assert.ok(seen.length > 0, stdout);
  assert.deepEqual(seen, seen.map((_, i) => seen[0]! + i));
});

Deno.test("a worker that ends at once: worker add shows its last lines, exit 1", async () => {
  await using engine = await setup(MANIFEST, 'console.error("no luck"); Deno.exit(3);');

  const { code, stdout, stderr } = await add(engine);

  assert.deepEqual([code, stdout], [1, ""]);
  assert.match(stderr, /^ {2}\| .*no luck$/m);
  assert.match(stderr, /^error: greeter (failed|ended).*3/m);
});

Deno.test("an installation that fails: worker add shows its last lines, exit 1", async () => {
  const scripts = "scripts:\n  install: echo looking; echo no such package >&2; exit 7\n";
  await using engine = await setup(`${MANIFEST}${scripts}`);

  const { code, stderr } = await add(engine);

  assert.equal(code, 1);
  assert.match(stderr, /^ {2}\| .*no such package$/m);
  assert.match(stderr, /^error: greeter failed: .*7/m);
});

Deno.test("worker add refuses what is no worker, and config.yaml stays as it was", async (t) => {
  await using engine = await setup("name: has spaces\nruntime:\n\tkind: python\n");
  const before = await Deno.readTextFile(`${engine.directory}/config.yaml`);

  for (
    const [what, args, said] of [
      ["a manifest with tabs", ["./workers/greeter"], /received a tab \(line 3\)/],
      [
        "a directory that is not there",
        ["./workers/missing"],
        /missing\/engine\.worker\.yaml not found/,
      ],
      ["a directory without a manifest", ["."], /engine\.worker\.yaml not found/],
      ["a built-in that is not there", ["engine-banana"], /there are: .*engine-state.*engine-http/],
    ] as const
  ) {
    await t.step(what, async () => {
      const isolation = args[0] === "engine-banana" ? [] : ["--isolation", "process"];
      const command = ["worker", "add", ...args, ...isolation];
      const { code, stdout, stderr } = await engine.command(...command);
      assert.deepEqual([code, stdout], [1, ""]);
      assert.match(stderr, said);
    });
  }

  assert.equal(await Deno.readTextFile(`${engine.directory}/config.yaml`), before);
});

Deno.test("every client command reports a dead engine and exits with 1", async () => {
  await using directory = await makeDirectory();
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const url = `ws://127.0.0.1:${listener.addr.port}`;
  listener.close();

  for (
    const args of [
      ["trigger", "math::add", "a=2"],
      ["trigger", "math::add", "--help"],
      ["functions"],
      ["worker", "list"],
      ["worker", "add", "engine-state"],
    ]
  ) {
    const { code, stdout, stderr } = await run(directory.path, ...args, "--url", url);

    assert.deepEqual([code, stdout], [1, ""], args.join(" "));
    assert.equal(
      stderr,
      `error: The engine is not running at ${url}; start it with: engine --config config.yaml\n`,
    );
  }
});

Deno.test("engine without config.yaml says so, serves, and ends on SIGTERM", async () => {
  await using directory = await makeDirectory();
  // Port 3111 of the embedded defaults may be taken here; the engine goes on without HTTP then.
  const child = spawn(directory.path, "--port", "0", "--log-level", "error");
  const errors = new Response(child.stderr).text();
  let stdout = "";
  const reading = (async () => {
    for await (const text of child.stdout.pipeThrough(new TextDecoderStream())) stdout += text;
  })();

  await until(() => /^workers +ws:\/\/127\.0\.0\.1:\d+$/m.test(stdout), () => stdout);
  child.kill("SIGTERM");
  const { code } = await child.status;
  await reading;

  assert.equal(code, 0, await errors);
  assert.match(stdout, /^engine \d+\.\d+\.\d+, pid \d+\nconfig +embedded defaults/);
});

Deno.test("engine with a wrong config.yaml ends with 2 and every problem", async (t) => {
  await using directory = await makeDirectory();
  const path = `${directory.path}/config.yaml`;

  for (
    const [what, text, problems] of [
      ["a list", "- engine\n", [/config\.yaml: expected/]],
      ["two problems", "engine:\n  port: abc\n  hots: x\n", [
        /engine\.port: .*line 2/,
        /engine\.hots/,
      ]],
      ["tabs", "engine:\n\tport: 1\n", [/line 2/]],
    ] as const
  ) {
    await t.step(what, async () => {
      await Deno.writeTextFile(path, text);
      const { code, stdout, stderr } = await run(directory.path, "--config", "config.yaml");
      assert.deepEqual([code, stdout], [2, ""], stderr);
      for (const problem of problems) assert.match(stderr, problem);
    });
  }

  await t.step("no such file", async () => {
    const { code, stderr } = await run(directory.path, "--config", "other.yaml");
    assert.equal(code, 2, stderr);
    assert.match(stderr, /other\.yaml/);
  });
});

Deno.test("engine on a port that is taken ends with 1 and what to do", async () => {
  await using engine = await EngineProcess.start();
  await using directory = await makeDirectory();

  const { code, stdout, stderr } = await run(directory.path, "--port", String(engine.port));

  assert.deepEqual([code, stdout], [1, ""], stderr);
  assert.match(stderr, new RegExp(`^error: address_in_use: .*${engine.port}`, "m"));
});

Deno.test("a token is required, and sufficient, to connect", async () => {
  await using engine = await EngineProcess.start();
  const config = await Deno.readTextFile(`${engine.directory}/config.yaml`);
  await engine.kill("SIGTERM");
  await engine.write("config.yaml", config.replace("engine:\n", "engine:\n  auth_token: secret\n"));
  await engine.start();

  const without = await engine.command("functions", "--all");
  const withIt = await engine.command("functions", "--all", "--token", "secret");

  assert.equal(without.code, 1);
  assert.match(without.stderr, /rejected the token; give one with --token or ENGINE_TOKEN/);
  assert.equal(withIt.code, 0, withIt.stderr);
});

Deno.test("engine start --daemon outlives its command, and engine stop ends it", async () => {
  await using directory = await makeDirectory();
  const config = "engine:\n  port: 0\nworkers:\n  - name: engine-state\n";
  await Deno.writeTextFile(`${directory.path}/config.yaml`, config);

  const started = await run(directory.path, "start", "--daemon");
  const pid = Number(/pid (\d+)/.exec(started.stdout)?.[1]);
  try {
    assert.equal(started.code, 0, started.stderr);
    const set = await run(directory.path, "call", "state::set", "scope=a", "key=b", "value=1");
    assert.equal(set.code, 0, set.stderr);
    const status = await run(directory.path, "status", "--output", "yaml");
    assert.match(status.stdout, new RegExp(`^pid: ${pid}$`, "m"));
    const logs = await run(directory.path, "logs");
    assert.match(logs.stdout, /worker joined.*engine-state/);

    const stopped = await run(directory.path, "stop");

    assert.equal(stopped.code, 0, stopped.stderr);
    assert.equal(isAlive(pid), false);
    assert.equal((await run(directory.path, "status")).code, 1);
  } finally {
    if (isAlive(pid)) Deno.kill(pid, "SIGKILL");
  }
});
