/**
 * What the program `engine` does to workers, from end to end: several at once, commands beside
 * them, timeouts, Ctrl-C, and permissions.
 *
 * @module
 */
import assert from "node:assert/strict";
import { EngineProcess, isAlive } from "../fakes/engine_process.ts";
import { until } from "../fakes/until.ts";

const MAIN = new URL("../../cli/main.ts", import.meta.url).pathname;

/** Sources of workers, by their names. */
const WORKERS: Readonly<Record<string, string>> = {
  greeter: `
import { registerWorker } from "engine-sdk";
registerWorker().registerFunction("greet::hello", () => "hello");
`,
  counter: `
import { registerWorker } from "engine-sdk";
registerWorker().registerFunction("count::up", () => 1);
`,
  broken: 'console.error("no luck"); Deno.exit(3);',
  mute: "setInterval(() => {}, 1_000);",
};

/** An engine, and directories of workers that are not added yet. */
async function setup(...names: string[]): Promise<EngineProcess> {
  const engine = await EngineProcess.start();
  const imports = { "engine-sdk": "../../.engine/sdk/typescript/engine_sdk.js" };
  for (const name of names) {
    const manifest = `name: ${name}\nruntime:\n  kind: javascript\n  package_manager: deno\n`;
    await engine.write(`workers/${name}/engine.worker.yaml`, manifest);
    await engine.write(`workers/${name}/main.js`, WORKERS[name]!);
    await engine.write(`workers/${name}/deno.json`, JSON.stringify({ imports }));
  }
  return engine;
}

function add(engine: EngineProcess, ...words: string[]) {
  return engine.command("worker", "add", ...words, "--isolation", "process");
}

/** Starts a command that a test is going to interrupt; `printed()` is what it has shown so far. */
function spawn(engine: EngineProcess, ...args: string[]) {
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--quiet", MAIN, ...args],
    cwd: engine.directory,
    env: { ENGINE_URL: engine.url, NO_COLOR: "1" },
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  let text = "";
  const read = async (stream: ReadableStream<Uint8Array>): Promise<void> => {
    for await (const part of stream.pipeThrough(new TextDecoderStream())) text += part;
  };
  const ended = Promise.all([child.status, read(child.stdout), read(child.stderr)])
    .then(([{ code }]) => code);
  return { ended, printed: () => text, interrupt: () => child.kill("SIGINT") };
}

Deno.test("several workers are added at once; one that fails does not hold up the others", async () => {
  await using engine = await setup("greeter", "counter", "broken");

  const { code, stdout, stderr } = await add(
    engine,
    "./workers/greeter",
    "./workers/broken",
    "engine-http",
    "port=0",
    "./workers/counter",
  );

  assert.equal(code, 1, stderr);
  for (const name of ["greeter", "counter", "engine-http"]) {
    assert.match(stdout, new RegExp(`^${name} is ready: `, "m"));
  }
  assert.match(stderr, /^error: broken (failed|ended)/m);
  assert.match(stderr, /^ {2}\| .*no luck$/m);
  const config = await Deno.readTextFile(`${engine.directory}/config.yaml`);
  assert.match(config, /name: greeter[^]*name: broken[^]*name: engine-http[^]*name: counter/);
  assert.equal((await engine.command("trigger", "count::up")).stdout, "1\n");
});

Deno.test("a worker that never registers: exit 3 at --timeout, and the engine goes on", async () => {
  await using engine = await setup("mute");

  const { code, stderr } = await add(engine, "./workers/mute", "--timeout", "3s");

  assert.equal(code, 3, stderr);
  assert.match(stderr, /^error: mute is still \w+ after 3\.0 s; see: engine worker status mute$/m);
  assert.equal((await engine.command("worker", "status", "mute")).code, 0);
});

Deno.test("Ctrl-C ends worker add with 130; the worker goes on and can be added again", async () => {
  await using engine = await setup("mute");
  const adding = spawn(engine, "worker", "add", "./workers/mute", "--isolation", "process");
  await until(() => adding.printed().includes("starting"), adding.printed);

  adding.interrupt();

  assert.equal(await adding.ended, 130, adding.printed());
  assert.match(
    adding.printed(),
    /^interrupted; the engine continues with mute; see: engine worker/m,
  );
  const status = await engine.command("worker", "status", "mute", "--json");
  assert.equal(JSON.parse(status.stdout).state, "starting");
  const again = await add(engine, "./workers/mute", "--timeout", "0");
  assert.equal(again.code, 0, again.stderr);
});

Deno.test("worker exec passes on bytes, exit codes and signals", async (t) => {
  await using engine = await setup("greeter");
  assert.equal((await add(engine, "./workers/greeter")).code, 0);
  const exec = (...command: string[]) =>
    engine.command("worker", "exec", "greeter", "--", ...command);

  await t.step("output of both streams, in the worker's directory and environment", async () => {
    const script = 'basename "$PWD"; echo "$ENGINE_WORKER_NAME" >&2; exit 7';
    assert.deepEqual(await exec("sh", "-c", script), {
      code: 7,
      stdout: "greeter\n",
      stderr: "greeter\n",
    });
  });

  await t.step("bytes that are no text, more than one message holds", async () => {
    const { stdout, success } = await new Deno.Command(Deno.execPath(), {
      args: [
        "run",
        "-A",
        "--quiet",
        MAIN,
        "worker",
        "exec",
        "greeter",
        "--",
        "sh",
        "-c",
        "head -c 200000 /dev/zero | tr '\\0' '\\377'",
      ],
      env: { ENGINE_URL: engine.url },
      stderr: "inherit",
    }).output();
    assert.ok(success);
    assert.equal(stdout.length, 200_000);
    assert.ok(stdout.every((byte) => byte === 255));
  });

  await t.step("a command that a signal ended", async () => {
    assert.equal((await exec("sh", "-c", "kill -9 $$")).code, 137);
  });

  await t.step("a program that is not there: exit 1 and an error line", async () => {
    const { code, stderr } = await exec("there-is-no-such-program");
    assert.match(stderr, /there-is-no-such-program/);
    assert.ok(code === 1 && /^error: /m.test(stderr) || code === 127, `${code} ${stderr}`);
  });

  await t.step("a replica that is not there: exit 1 and an error line", async () => {
    const { code, stderr } = await engine.command(
      "worker",
      "exec",
      "greeter",
      "--replica",
      "9",
      "--",
      "true",
    );
    assert.equal(code, 1);
    assert.match(stderr, /^error: /);
  });

  await t.step("Ctrl-C ends the command, wherever it is", async () => {
    const running = spawn(
      engine,
      "worker",
      "exec",
      "greeter",
      "--",
      "sh",
      "-c",
      "echo pid=$$; exec sleep 600",
    );
    await until(() => /pid=\d+\n/.test(running.printed()), running.printed);
    running.interrupt();
    assert.equal(await running.ended, 130);
    const pid = Number(/pid=(\d+)/.exec(running.printed())![1]);
    await until(() => !isAlive(pid));
  });
});

Deno.test("only the command line of the engine's user changes workers", async (t) => {
  await using engine = await setup("greeter");
  assert.equal((await add(engine, "./workers/greeter")).code, 0);

  await t.step("a worker may look, and may not touch", async () => {
    await using worker = engine.connect("stranger");
    const ask = (name: string, payload = {}) =>
      worker.trigger({ function_id: `engine::supervisor::${name}`, payload });
    await ask("list");
    await ask("status", { name: "greeter" });
    await assert.rejects(ask("stop", { name: "greeter" }), { code: "FORBIDDEN" });
    await assert.rejects(ask("exec", { name: "greeter", command: ["id"] }), { code: "FORBIDDEN" });
  });

  await t.step("neither may a command line that cannot read the key", async () => {
    const { code, stderr } = await new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", "--quiet", MAIN, "worker", "stop", "greeter"],
      env: { ENGINE_URL: engine.url, XDG_STATE_HOME: engine.directory },
    }).output();
    assert.equal(code, 1);
    const said = new TextDecoder().decode(stderr);
    assert.match(
      said,
      /^error: FORBIDDEN: Only the command line of the engine's own user .*\/engine\/\d+\.json\)/,
    );
  });

  const { stdout } = await engine.command("worker", "status", "greeter", "--json");
  assert.equal(JSON.parse(stdout).state, "ready");
});

Deno.test("a plain process gets a part of the engine's environment, and its own", async () => {
  Deno.env.set("E2E_SECRET", "of the engine");
  Deno.env.set("PIP_INDEX_URL", "https://packages.example/simple");
  await using engine = await setup("greeter");
  Deno.env.delete("E2E_SECRET");
  Deno.env.delete("PIP_INDEX_URL");
  const path = "workers/greeter/engine.worker.yaml";
  const manifest = await Deno.readTextFile(`${engine.directory}/${path}`);
  await engine.write(path, `${manifest}env:\n  OWN: mine\n`);
  const added = await add(engine, "./workers/greeter");
  assert.equal(added.code, 0, added.stderr);

  const { stdout } = await engine.command("worker", "exec", "greeter", "--", "env");

  const names = stdout.split("\n").map((line) => line.split("=")[0]!);
  assert.ok(!names.includes("E2E_SECRET"), stdout);
  for (const name of ["PATH", "HOME", "OWN", "PIP_INDEX_URL", "ENGINE_URL", "ENGINE_LAUNCH_ID"]) {
    assert.ok(names.includes(name), `${name} of ${stdout}`);
  }
});
