/**
 * An engine with `engine.tls` and all its clients: workers of three languages, the
 * command line, workers that it starts itself, and clients with a wrong URL or CA.
 *
 * @module
 */
import assert from "node:assert/strict";
import { Certificates, findOpenssl } from "../fakes/certificates.ts";
import { type CommandResult, EngineProcess } from "../fakes/engine_process.ts";
import { findNode, findPython, NodeProgram, PYTHON_ENV } from "../fakes/programs.ts";
import { until } from "../fakes/until.ts";

const ignore = !await findOpenssl("tests/e2e/tls_test.ts") ||
  !await findNode("tests/e2e/tls_test.ts") || !await findPython("tests/e2e/tls_test.ts");
const ROOT = new URL("../../", import.meta.url);

const DENO_WORKER = `
  import { registerWorker } from "${new URL("mod.ts", ROOT).href}";
  registerWorker().registerFunction("deno::echo", (payload) => payload);`;
const NODE_WORKER = `
  const worker = registerWorker();
  worker.registerFunction("node::echo", (payload) => payload);
  process.stdin.on("end", () => worker.shutdown()).resume();`;
const PYTHON_WORKER = `
from engine_sdk import register_worker
worker = register_worker()
worker.register_function("py::echo", lambda payload: payload)
`;
const OWN_WORKER = `
  import { registerWorker } from "engine-sdk";
  const worker = registerWorker();
  worker.registerFunction("own::where", () => Deno.env.get("ENGINE_URL"));`;

/** A certificate and an engine with it. */
async function setup(transport: "raw" | "deno-serve", more = "") {
  const stack = new AsyncDisposableStack();
  const made = stack.use(await Certificates.make());
  const files = `{ cert: ${made.path("cert.pem")}, key: ${made.path("key.pem")} }`;
  const settings = `  transport: ${transport}\n  tls: ${files}\n${more}`;
  const engine = stack.use(await EngineProcess.start("", settings));
  const url = `wss://localhost:${engine.port}`;
  /** Runs the command line against an address. Default: the right URL and CA. */
  const command = async (args: string[], env: Record<string, string>): Promise<CommandResult> => {
    const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", "--quiet", new URL("cli/main.ts", ROOT).pathname, ...args],
      env: { ENGINE_URL: url, NO_COLOR: "1", ...env },
      stdin: "null",
    }).output();
    const text = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);
    return { code, stdout: text(stdout), stderr: text(stderr) };
  };
  /** Runs a program until the end of the test. */
  const run = (program: string, args: string[], env: Record<string, string>): void => {
    const child = new Deno.Command(program, {
      args,
      env: { ENGINE_URL: url, ...made.trusting(), ...env },
      stdin: "null",
      stdout: "null",
    }).spawn();
    stack.defer(async () => {
      child.kill("SIGKILL");
      await child.status;
    });
  };
  return { made, engine, url, command, run, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

for (const transport of ["raw", "deno-serve"] as const) {
  Deno.test({
    name: `wss:// on ${transport}: workers in Deno, Node and Python, and the command line`,
    ignore,
    async fn() {
      await using test = await setup(transport);
      test.run(Deno.execPath(), ["eval", DENO_WORKER], {});
      test.run("python3", ["-c", PYTHON_WORKER], PYTHON_ENV);
      await using _node = new NodeProgram(test.url, NODE_WORKER, test.made.trusting());

      for (const name of ["deno", "node", "py"]) {
        const args = ["trigger", `${name}::echo`, "--payload", '{"size":"ü"}'];
        let last: CommandResult | undefined;
        await until(async () => {
          last = await test.command(args, test.made.trusting());
          return last.code === 0;
        }, () => `${name}: ${last?.stderr}\n${test.engine.stderr}`);
        assert.deepEqual(JSON.parse(last!.stdout), { size: "ü" });
      }
    },
  });
}

Deno.test({
  name: "workers that an engine with TLS starts reach it without a CA, over loopback",
  ignore,
  async fn() {
    await using test = await setup("raw");
    const folder = "workers/own";
    await test.engine.write(
      `${folder}/engine.worker.yaml`,
      "name: own\nruntime:\n  kind: typescript\n  entry: main.ts\n",
    );
    await test.engine.write(`${folder}/main.ts`, OWN_WORKER);
    const imports = { "engine-sdk": "../../.engine/sdk/typescript/engine_sdk.js" };
    await test.engine.write(`${folder}/deno.json`, JSON.stringify({ imports }));
    const path = `${test.engine.directory}/${folder}`;

    const trust = test.made.trusting();
    const added = await test.command(["worker", "add", path, "--isolation", "process"], trust);
    const asked = await test.command(["trigger", "own::where"], trust);

    assert.equal(added.code, 0, added.stderr);
    assert.match(asked.stdout, /^"ws:\/\/127\.0\.0\.1:\d+"\n$/, asked.stderr);
    assert.notEqual(new URL(JSON.parse(asked.stdout)).port, String(test.engine.port));
  },
});

Deno.test({
  name: "the command line says what to do when TLS fails",
  ignore,
  async fn() {
    await using test = await setup("raw");
    await using plain = await EngineProcess.start();
    const trigger = ["trigger", "engine::functions::list"];
    const other = `wss://127.0.0.1:${plain.port}`;

    const [untrusted, plainly, tlsless] = await Promise.all([
      test.command(trigger, {}),
      test.command(trigger, { ENGINE_URL: `ws://localhost:${test.engine.port}` }),
      test.command([...trigger, "--url", other], {}),
    ]);

    assert.deepEqual([untrusted.code, plainly.code, tlsless.code], [1, 1, 1]);
    assert.match(untrusted.stderr, /certificate there is not trusted here; .* DENO_CERT/);
    assert.match(plainly.stderr, /the engine there may use TLS; dial wss:\/\/ instead of ws:/);
    assert.match(tlsless.stderr, /the engine there does not use TLS; dial ws:\/\/ instead of wss:/);
    await until(() => test.engine.stderr.includes("the peer has to dial wss://"));
    await until(() => plain.stderr.includes("the peer has to dial ws://"));
  },
});

Deno.test({
  name: "SDKs say what to do when a certificate is not trusted, or for another name",
  ignore,
  async fn() {
    await using test = await setup("raw");
    await test.made.sign("cert.pem", "key.pem", "DNS:other.example");
    await test.engine.kill("SIGTERM");
    await test.engine.start();
    const say = `
      const onError = (error) => say(error.message);
      const worker = registerWorker(undefined, { onError, reconnect: { maxAttempts: 1 } });`;

    await using trusting = new NodeProgram(test.url, say, test.made.trusting());
    await using untrusting = new NodeProgram(test.url, say);
    const python = await new Deno.Command("python3", {
      args: [
        "-c",
        `import logging, sys
logging.basicConfig(stream=sys.stdout)
from engine_sdk import register_worker, InitOptions, ReconnectOptions
try:
    register_worker(None, InitOptions(reconnect=ReconnectOptions(max_attempts=1)))
except Exception as error:
    print(error)
`,
      ],
      env: { ...PYTHON_ENV, ENGINE_URL: test.url },
      stderr: "null",
    }).output();

    assert.match(String(await trusting.said()), /certificate there is for another host name/);
    assert.match(String(await untrusting.said()), /is not trusted here; .* NODE_EXTRA_CA_CERTS/);
    const said = new TextDecoder().decode(python.stdout);
    assert.match(said, /is not trusted here; name the PEM file of its CA in SSL_CERT_FILE/);
  },
});

Deno.test({
  name: "a certificate that cannot be used is named before anything starts, with its line",
  ignore,
  async fn() {
    await using made = await Certificates.make();
    const config = made.path("config.yaml");
    await Deno.writeTextFile(config, "engine:\n  tls:\n    cert: gone.pem\n    key: ca.pem\n");
    const main = new URL("cli/main.ts", ROOT).pathname;

    const { code, stderr } = await new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", "--quiet", main, "--config", config],
      stdin: "null",
    }).output();

    const text = new TextDecoder().decode(stderr);
    assert.equal(code, 2, text);
    const gone = made.path("gone.pem");
    assert.ok(text.includes(`engine.tls.cert: expected a certificate in PEM`), text);
    assert.ok(text.includes(`received ${gone}, which does not exist (line 3)`), text);
    assert.ok(text.includes("engine.tls.key: expected a private key in PEM"), text);
    assert.ok(text.includes("(line 4)"), text);
  },
});

Deno.test({
  name: "a certificate that expires soon is logged at the start",
  ignore,
  async fn() {
    await using test = await setup("raw");
    await test.made.sign("cert.pem", "key.pem", "DNS:localhost", 3);

    await test.engine.kill("SIGTERM");
    await test.engine.start();

    await until(() => test.engine.stderr.includes("the certificate has to be renewed"));
  },
});
