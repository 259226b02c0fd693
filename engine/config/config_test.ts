import assert from "node:assert/strict";
import { defaultMemoryMb } from "../platform/memory_budget.ts";
import { fitConfig } from "../../workers/kit/fit.ts";
import * as v from "../../workers/kit/schema.ts";
import type { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type { Config, KnownWorker } from "../ports/config.ts";
import { defaultConfig, findConfig, loadConfig, parseConfig } from "./config.ts";

const HttpConfig = v.strictObject({
  host: v.optional(v.string(), "127.0.0.1"),
  port: v.optional(
    v.pipe(v.number("expected 1 to 65535"), v.minValue(1), v.maxValue(65_535)),
    3111,
  ),
  mode: v.optional(v.picklist(["open", "shut"])),
  limit: v.optional(v.pipe(v.number(), v.maxValue(10))),
});

const builtins: KnownWorker[] = [
  { name: "engine", runsAlways: true, parse: (raw) => raw },
  { name: "engine-http", parse: (raw) => fitConfig(HttpConfig, raw) },
  {
    name: "engine-state",
    runsByDefault: true,
    parse: (raw) => fitConfig(v.strictObject({}), raw),
  },
];

/** A project with one directory, `worker`, and one file, `file`. */
async function project(): Promise<{ directory: string } & AsyncDisposable> {
  const directory = await Deno.makeTempDir();
  await Deno.mkdir(`${directory}/worker`);
  await Deno.writeTextFile(`${directory}/file`, "");
  const remove = () => Deno.remove(directory, { recursive: true });
  return { directory, [Symbol.asyncDispose]: remove };
}

async function read(text: string, env: Record<string, string> = {}): Promise<Config> {
  await using there = await project();
  return parseConfig(text, `${there.directory}/config.yaml`, builtins, env);
}

/** All problems of a text. */
async function problemsOf(text: string, env: Record<string, string> = {}): Promise<string[]> {
  try {
    await read(text, env);
  } catch (thrown) {
    const { code, details } = thrown as EngineError;
    assert.equal(code, "config_invalid");
    return details!.problems as string[];
  }
  return [];
}

Deno.test("parseConfig() reads every key", async () => {
  await using there = await project();
  const text = `engine:
  host: 0.0.0.0
  port: 1
  auth_token: \${ENGINE_TOKEN:}
  insecure: true
  allowed_origins: [https://example.org]
  transport: deno-serve
  max_message_bytes: 2048
  invocation_timeout_ms: 5
  validate_payloads: false
  shared_functions: ["public::*"]
  max_inflight_calls_per_worker: 6
  max_inflight_bytes_per_worker: 4096
  memory_mb: 64
  heartbeat_ms: 500
  silence_ms: 1000
  http_functions: { allow: [api.example.com], allow_private: true, auth_env: [QUOTES_TOKEN] }
log: { level: debug, format: json }
workers:
  - name: engine-http
    config: { host: localhost, port: 3999 }
  - name: math
    path: ./worker/../worker/
    isolation: microvm
    accel: tcg
    replicas: 3
    env: { LEVEL: 1.10 }
`;

  const config = parseConfig(text, `${there.directory}/config.yaml`, builtins, {
    ENGINE_TOKEN: "0123",
  });

  const { values: _values, text: _text, ...rest } = config; // They have tests of their own.
  assert.deepEqual(rest, {
    path: `${there.directory}/config.yaml`,
    directory: there.directory,
    dataDirectory: `${there.directory}/.engine`,
    engine: {
      host: "0.0.0.0",
      port: 1,
      auth_token: "0123",
      insecure: true,
      allowed_origins: ["https://example.org"],
      transport: "deno-serve",
      max_message_bytes: 2048,
      invocation_timeout_ms: 5,
      validate_payloads: false,
      shared_functions: ["public::*"],
      max_inflight_calls_per_worker: 6,
      max_inflight_bytes_per_worker: 4096,
      memory_mb: 64,
      heartbeat_ms: 500,
      silence_ms: 1000,
      listeners: [],
      http_functions: {
        allow: ["api.example.com"],
        allow_private: true,
        auth_env: ["QUOTES_TOKEN"],
      },
    },
    log: { level: "debug", format: "json" },
    workers: [
      {
        kind: "builtin",
        name: "engine-http",
        config: { host: "localhost", port: 3999 },
        raw: { host: "localhost", port: 3999 },
      },
      {
        kind: "directory",
        name: "math",
        path: `${there.directory}/worker`,
        isolation: "microvm",
        accel: "tcg",
        replicas: 3,
        env: { LEVEL: "1.10" },
      },
    ],
  });
});

Deno.test("parseConfig() fills in what is left out, also for sections without a value", async () => {
  const config = await read("engine:\nlog:\nworkers:\n");

  assert.deepEqual(config.engine, {
    host: "127.0.0.1",
    port: 49_134,
    insecure: false,
    allowed_origins: [],
    transport: "raw",
    max_message_bytes: 67_108_864,
    invocation_timeout_ms: 600_000,
    validate_payloads: true,
    max_inflight_calls_per_worker: 10_000,
    max_inflight_bytes_per_worker: 268_435_456,
    memory_mb: Math.max(defaultMemoryMb(), 128),
    heartbeat_ms: 20_000,
    silence_ms: 60_000,
    listeners: [],
    http_functions: { allow: [], allow_private: false, auth_env: [] },
  });
  assert.deepEqual(config.log, { level: "info", format: "auto" });
  assert.deepEqual(config.workers, []);
});

Deno.test("parseConfig() refuses memory for less than two messages, and a silence of one ping", async () => {
  const text = "engine:\n  memory_mb: 127\n  heartbeat_ms: 1000\n  silence_ms: 1999\n";
  assert.deepEqual(await problemsOf(text), [
    "engine.memory_mb: expected at least 128, twice max_message_bytes, received 127 (line 2)",
    "engine.silence_ms: expected at least 2000, twice heartbeat_ms, received 1999 (line 4)",
  ]);
  const { engine } = await read("engine:\n  heartbeat_ms: 30000\n");
  assert.equal(engine.silence_ms, 90_000, "three pings without an answer");
});

Deno.test("parseConfig() takes an empty token for none", async () => {
  const config = await read("engine:\n  auth_token: ${ENGINE_TOKEN:}\n");

  assert.equal("auth_token" in config.engine, false);
});

Deno.test("parseConfig() reads a port out of a variable", async () => {
  const config = await read("engine:\n  port: ${PORT:49134}\n", { PORT: "8000" });

  assert.equal(config.engine.port, 8000);
});

Deno.test("parseConfig() reports all problems together, with their lines", async () => {
  const text = `engine:
  prot: 1
  port: 70000
workers:
  - name: engine-http
    config:
      port: abc
  - name: gone
    path: ./gone
`;

  assert.deepEqual(await problemsOf(text), [
    "engine.prot: expected one of the keys host, port, auth_token, insecure, allowed_origins, " +
    "transport, tls, max_message_bytes, invocation_timeout_ms, validate_payloads, shared_functions, " +
    "max_inflight_calls_per_worker, " +
    "max_inflight_bytes_per_worker, memory_mb, heartbeat_ms, silence_ms, listeners, http_functions, " +
    "cluster, received an unknown key; did you mean port? (line 2)",
    "engine.port: expected 0 to 65535, received 70000 (line 3)",
    'workers[0].config.port: expected 1 to 65535, received "abc" (line 7)',
    'workers[1].path: expected a directory, received "./gone", which does not exist (line 9)',
  ]);
});

Deno.test("parseConfig() names the first problem in the message and counts the others", async () => {
  await using there = await project();
  const path = `${there.directory}/config.yaml`;

  assert.throws(() => parseConfig("engine:\n  port: x\n  insecure: 1\n", path, builtins, {}), {
    code: "config_invalid",
    message: `${path} cannot be used: ` +
      'engine.port: expected 0 to 65535, received "x" (line 2) (and 1 more)',
  });
});

const BAD: readonly (readonly [title: string, text: string, ...problems: string[]])[] = [
  [
    "a list",
    "- name: engine-state\n",
    "config.yaml: expected a mapping with engine, log or workers, received a list (line 1)",
  ],
  [
    "a string",
    "hello\n",
    'config.yaml: expected a mapping with engine, log or workers, received "hello" (line 1)',
  ],
  [
    "an empty file",
    "# nothing but this\n",
    "config.yaml: expected a mapping with engine, log or workers, received an empty file",
  ],
  [
    "tabs",
    "workers:\n\t- name: engine-state\n",
    "config.yaml: expected spaces for indentation, received a tab (line 2)",
  ],
  [
    "a key twice",
    "engine:\n  port: 1\nengine:\n  port: 2\n",
    "engine: expected the key once, received it again, first in line 1 (line 3)",
  ],
  [
    "a name twice",
    "workers:\n  - name: engine-state\n  - name: engine-state\n",
    "workers[1].name: expected every name once, " +
    "received engine-state again, first in line 2 (line 3)",
  ],
  [
    "a path to a file",
    "workers:\n  - name: a\n    path: ./file\n",
    'workers[0].path: expected a directory, received "./file", which is a file (line 3)',
  ],
  [
    "an open address without protection",
    "engine:\n  host: 0.0.0.0\n",
    "engine.host: expected a loopback address, or auth_token, or insecure: true, " +
    'received "0.0.0.0" (line 2)',
  ],
  [
    "an unknown built-in worker",
    "workers:\n  - name: engine-stat\n",
    "workers[0].name: expected a built-in worker (engine-http, engine-state) or a path beside " +
    'the name, received "engine-stat"; did you mean engine-state? (line 2)',
  ],
  [
    "both path and config",
    "workers:\n  - name: a\n    path: ./worker\n    config: {}\n",
    "workers[0].config: expected either path or config, received both (line 4)",
  ],
  [
    "a directory named like a built-in worker",
    "workers:\n  - name: engine-http\n    path: ./worker\n",
    "workers[0].name: expected a name that no built-in worker has, " +
    'received "engine-http" (line 2)',
  ],
  [
    "what belongs to directories at a built-in worker",
    "workers:\n  - name: engine-http\n    isolation: process\n    accel: kvm\n    replicas: 2\n" +
    "    env: {}\n",
    "workers[0].isolation: expected no such key without path, received one (line 3)",
    "workers[0].accel: expected no such key without path, received one (line 4)",
    "workers[0].replicas: expected no such key without path, received one (line 5)",
    "workers[0].env: expected no such key without path, received one (line 6)",
  ],
  [
    "wrong values of all that a directory can have",
    "workers:\n  - name: a\n    path: ./worker\n    accel: hvf\n    replicas: 0\n    env: [A=1]\n" +
    "    replica: 2\n",
    "workers[0].replica: expected one of the keys name, path, isolation, accel, replicas, env, required, " +
    "config, received an unknown key; did you mean replicas? (line 7)",
    'workers[0].accel: expected one of auto, kvm, tcg, received "hvf" (line 4)',
    "workers[0].replicas: expected 1 to 64, received 0 (line 5)",
    "workers[0].env: expected a mapping of names to strings, received a list (line 6)",
  ],
  [
    "replicas that are no number",
    "workers:\n  - name: a\n    path: ./worker\n    replicas: many\n",
    'workers[0].replicas: expected 1 to 64, received "many" (line 4)',
  ],
  [
    "an unknown isolation",
    "workers:\n  - name: a\n    path: ./worker\n    isolation: container\n",
    'workers[0].isolation: expected one of microvm, process, received "container" (line 4)',
  ],
  [
    "a worker without a name, and one that is no mapping",
    "workers:\n  - path: ./worker\n  - engine-state\n",
    'workers[1]: expected a mapping, received "engine-state" (line 3)',
    "workers[0].name: expected the name of a worker, received nothing (line 2)",
  ],
  [
    "a name with spaces",
    "workers:\n  - name: my worker\n    path: ./worker\n",
    "workers[0].name: expected 1 to 64 letters, digits, -, _ or ., " +
    'beginning with a letter or digit, received "my worker" (line 2)',
  ],
  [
    "workers that are no list",
    "workers: { name: a }\n",
    "workers: expected a list, received a mapping (line 1)",
  ],
  [
    "a missing variable",
    "engine:\n  auth_token: ${NOPE}\n",
    "engine.auth_token: expected the environment variable NOPE to be set, " +
    "received nothing (line 2)",
  ],
  [
    "a token that is no text, without showing it",
    "engine:\n  auth_token: 12345\n",
    "engine.auth_token: expected a string, received something else (line 2)",
  ],
  [
    "larger messages than SDKs receive",
    "engine:\n  max_message_bytes: 267386881\n",
    "engine.max_message_bytes: expected at most 267386880 (255 MiB), since SDKs receive up to " +
    "256 MiB, received 267386881 (line 2)",
  ],
  [
    "fewer bytes in flight than one message may have",
    "engine:\n  max_message_bytes: 5000\n  max_inflight_bytes_per_worker: 4000\n",
    "engine.max_inflight_bytes_per_worker: expected at least max_message_bytes (5000), " +
    "received 4000 (line 3)",
  ],
  [
    "what a built-in worker refuses",
    "workers:\n  - name: engine-http\n    config:\n      prot: 1\n      mode: ajar\n" +
    "      limit: 11\n      host: 5\n",
    "workers[0].config.host: expected a string, received 5 (line 7)",
    'workers[0].config.mode: expected one of open, shut, received "ajar" (line 5)',
    "workers[0].config.limit: expected at most 10, received 11 (line 6)",
    "workers[0].config.prot: expected a known key, received an unknown key (line 4)",
  ],
  [
    "levels and formats that do not exist",
    "log: { level: loud, format: xml }\n",
    'log.level: expected one of debug, info, warn, error, received "loud" (line 1)',
    'log.format: expected one of auto, text, json, received "xml" (line 1)',
  ],
];

for (const [title, text, ...problems] of BAD) {
  Deno.test(`parseConfig() reports ${title}`, async () => {
    assert.deepEqual(await problemsOf(text), problems);
  });
}

Deno.test("parseConfig() allows an open address with a token or with insecure", async () => {
  assert.deepEqual(await problemsOf("engine: { host: 0.0.0.0, auth_token: secret }\n"), []);
  assert.deepEqual(await problemsOf("engine: { host: '::', insecure: true }\n"), []);
  assert.deepEqual(await problemsOf("engine: { host: '::1' }\n"), []);
});

Deno.test("parseConfig() reports a worker whose check breaks", () => {
  const broken = {
    name: "engine-odd",
    parse: () => {
      throw new Error("no disk");
    },
  };

  assert.throws(
    () => parseConfig("workers:\n  - name: engine-odd\n", "/x/config.yaml", [broken], {}),
    {
      details: {
        problems: [
          "workers[0].config: expected a valid configuration, received another: no disk (line 2)",
        ],
      },
    },
  );
});

Deno.test("loadConfig() reads the file, and reports one that does not exist", async () => {
  await using there = await project();
  const path = `${there.directory}/config.yaml`;
  await Deno.writeTextFile(path, "workers:\n  - name: engine-state\n");

  assert.equal(loadConfig(path, builtins, {}).workers[0]!.name, "engine-state");
  const message = `${path}.bak does not exist; make a project with engine create --directory ` +
    "<name>, or give the path of another file";
  const thrown = { code: "config_invalid", message, details: { problems: [message] } };
  assert.throws(() => loadConfig(`${path}.bak`, builtins, {}), thrown);
});

Deno.test("defaultConfig() names the workers that run by default", () => {
  const config = defaultConfig("/project", builtins);

  assert.equal(config.path, null);
  assert.equal(config.dataDirectory, "/project/.engine");
  assert.deepEqual(config.workers.map(({ name }) => name), ["engine-state"]);
  assert.equal(config.engine.port, 49_134);
});

Deno.test("findConfig() gives the embedded defaults for a directory without config.yaml", async () => {
  await using place = await folder();

  const config = await findConfig({ directory: place.path }, builtins, {});

  assert.equal(config.path, null);
  assert.equal(config.directory, place.path);
});

Deno.test("findConfig() reads the config.yaml of a directory", async () => {
  await using place = await folder();
  await Deno.writeTextFile(`${place.path}/config.yaml`, "engine: {port: 4000}\n");

  const config = await findConfig({ directory: place.path }, builtins, {});

  assert.equal(config.path, `${place.path}/config.yaml`);
  assert.equal(config.engine.port, 4000);
});

Deno.test("findConfig() gives the real path of a file in a linked folder", async () => {
  await using place = await folder();
  await Deno.mkdir(`${place.path}/real`);
  await Deno.writeTextFile(`${place.path}/real/other.yaml`, "engine: {port: 4001}\n");
  await Deno.symlink(`${place.path}/real`, `${place.path}/link`);

  const config = await findConfig({ configPath: `${place.path}/link/other.yaml` }, builtins, {});

  assert.equal(config.path, `${place.path}/real/other.yaml`);
});

Deno.test("findConfig() refuses a file that was named and does not exist", async () => {
  await using place = await folder();

  await assert.rejects(findConfig({ configPath: `${place.path}/none.yaml` }, builtins, {}), {
    code: "config_invalid",
  });
});

async function folder(): Promise<AsyncDisposable & { readonly path: string }> {
  const path = await Deno.realPath(await Deno.makeTempDir());
  return { path, [Symbol.asyncDispose]: () => Deno.remove(path, { recursive: true }) };
}
