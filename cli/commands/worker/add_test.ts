import assert from "node:assert/strict";
import { InvocationError, type Json, type JsonObject } from "../../../mod.ts";
import { FakeScreen } from "../../../tests/fakes/fake_terminal.ts";
import { FakeTerminal } from "../../../tests/fakes/fake_terminal.ts";
import { type Script, scriptedWorkers } from "../../../tests/fakes/scripted_workers.ts";
import { replicaStatus } from "../../../tests/fakes/samples.ts";
import { UsageError } from "../../failure.ts";
import { showProgress } from "../../progress.ts";
import { addAll, type AddFlags, readRequests } from "./add.ts";

interface Options {
  readonly platform?: string;
  readonly screen?: FakeScreen;
  /** When Ctrl-C is pressed. */
  readonly interruptMs?: number;
}

/** An engine that adds these workers, each with scripted states. */
function setup(scripts: Record<string, Script>, options: Options = {}): FakeTerminal {
  const { platform, screen, interruptMs = Infinity } = options;
  const terminal: FakeTerminal = new FakeTerminal({
    functions: scriptedWorkers(scripts, platform),
    onWait: (nowMs) => nowMs >= 1_000 + interruptMs && terminal.interrupt(),
    ...screen ? { screen } : {},
  });
  return terminal;
}

function requestsTo(terminal: FakeTerminal): Json[] {
  return terminal.calls.filter(({ function_id }) => function_id.endsWith("::add"))
    .map(({ payload }) => payload);
}

Deno.test("worker add shows the config file and the progress, and ends with one line", async () => {
  const terminal = setup({
    "math-worker": {
      states: [
        { state: "installing", dependencies: null },
        { state: "installing", dependencies: null },
        { state: "installing", dependencies: null },
        { state: "installing", dependencies: null },
        { state: "starting", dependencies: "installed" },
        {},
      ],
    },
  });

  assert.equal(await terminal.run("worker", "add", "./workers/math-worker"), 0);

  assert.deepEqual(terminal.errLines.map((line) => line.replace(/\d+ ms/, "…")), [
    "math-worker  …  added to /project/config.yaml",
    "math-worker  …  checking dependencies",
    "math-worker  …  dependencies installed in 400 ms",
    "math-worker  …  starting as a plain process, without isolation",
  ]);
  assert.deepEqual(terminal.outLines, ["math-worker is ready: pid 42, 900 ms, math::add"]);
  assert.equal(terminal.openConnections, 0);
  assert.equal(terminal.interruptListeners, 0);
});

Deno.test("worker add adds several workers in their order, and follows them at once", async () => {
  const terminal = setup({
    a: { states: [{ state: "starting" }, { state: "starting" }, {}] },
    b: {},
    "engine-http": {},
  });

  const code = await terminal.run(
    "worker",
    "add",
    "./a",
    "engine-http",
    "port=0",
    "./b",
    "--accel",
    "tcg",
  );

  assert.equal(code, 0);
  assert.deepEqual(requestsTo(terminal), [
    { path: "/project/a", accel: "tcg" },
    { name: "engine-http", config: { port: 0 } },
    { path: "/project/b", accel: "tcg" },
  ]);
  assert.deepEqual(terminal.outLines.map((line) => line.split(" ")[0]).sort(), [
    "a",
    "b",
    "engine-http",
  ]);
  assert.equal(terminal.errLines.at(-1), "serving  http  http://127.0.0.1:3111");
});

Deno.test("a refused worker and a failed one do not stop the others; exit 1", async () => {
  const body = { code: "manifest_invalid", message: "name: expected a name (line 1)" };
  const terminal = setup({
    a: { refusal: new InvocationError(body, "engine::supervisor::add") },
    b: { states: [{ state: "failed", reason: "no luck" }] },
    c: {},
  });

  assert.equal(await terminal.run("worker", "add", "./a", "./b", "./c"), 1);

  assert.deepEqual(terminal.errLines.filter((line) => line.startsWith("error")), [
    "error: name: expected a name (line 1)",
    "error: b failed: no luck; all it printed: engine worker logs b",
  ]);
  assert.deepEqual(terminal.outLines, ["c is ready: pid 42, 900 ms, math::add"]);
});

Deno.test("one invalid argument among several: nothing is done; exit 2", async () => {
  const terminal = setup({ a: {} });

  assert.equal(await terminal.run("worker", "add", "./a", "./b", "port=1"), 2);
  assert.deepEqual(terminal.addresses, []);
});

Deno.test("a worker whose machine cannot be started: the message is shown whole; exit 1", async () => {
  const message = "KVM not accessible: sudo usermod -aG kvm $USER, log in again; " +
    "or --accel tcg (software emulation, slow), or --isolation process (no VM)";
  const body = { code: "isolation_unavailable", message, details: { worker: "m" } };
  const terminal = setup({ m: { refusal: new InvocationError(body, "engine::supervisor::add") } });

  assert.equal(await terminal.run("worker", "add", "./m"), 1);

  assert.deepEqual(terminal.errLines, [`error: isolation_unavailable: ${message}`]);
  assert.deepEqual(terminal.outLines, []);
});

Deno.test("a worker that is not ready in time ends with 3", async () => {
  const terminal = setup({ m: { states: [{ state: "installing" }] } });

  assert.equal(await terminal.run("worker", "add", "./m", "--timeout", "2s"), 3);
  assert.equal(
    terminal.errLines.at(-1),
    "error: m is still installing after 2.0 s; see: engine worker status m",
  );
});

Deno.test("an engine that does not answer in time ends with 3, without further requests", async () => {
  const terminal = setup({ a: { adding: new Promise(() => {}) }, b: {} });

  assert.equal(await terminal.run("worker", "add", "./a", "./b", "--timeout", "1"), 3);

  assert.deepEqual(terminal.errLines, [
    "error: ./a is still being added after 1.0 s; see: engine worker list",
    "error: ./b is not added yet after 1.0 s; see: engine worker list",
  ]);
  assert.equal(requestsTo(terminal).length, 1);
});

Deno.test("worker add with --timeout 0 does not wait", async () => {
  const terminal = setup({ m: { states: [{ state: "installing" }] } });

  assert.equal(await terminal.run("worker", "add", "./m", "--timeout", "0"), 0);
  assert.deepEqual(terminal.outLines, ["m is queued; see: engine worker status m"]);
  assert.ok(!terminal.calls.some(({ function_id }) => function_id.endsWith("::status")));
});

Deno.test("Ctrl-C ends with 130, and names the requested workers and the others", async () => {
  const terminal = setup({
    a: { states: [{ state: "starting" }] },
    b: { adding: new Promise(() => {}) },
    c: {},
  }, { interruptMs: 1_000 });

  assert.equal(await terminal.run("worker", "add", "./a", "./b", "./c"), 130);

  assert.deepEqual(terminal.errLines.slice(-2), [
    "interrupted; the engine continues with a, ./b; see: engine worker list",
    "interrupted before it was added: ./c",
  ]);
  assert.equal(requestsTo(terminal).length, 2);
  assert.equal(terminal.openConnections, 0);
  assert.equal(terminal.interruptListeners, 0);
});

Deno.test("Ctrl-C on a terminal leaves the rows and restores the terminal", async () => {
  const screen = new FakeScreen();
  const terminal = setup({ a: { states: [{ state: "starting" }] } }, { screen, interruptMs: 700 });

  assert.equal(await terminal.run("worker", "add", "./a"), 130);

  assert.match(
    screen.text,
    /^a +\d+ ms {2}starting .*\ninterrupted; the engine continues with a; see/,
  );
  assert.ok(screen.isRestored);
});

Deno.test("on a terminal each worker has its row from the start", async () => {
  const screen = new FakeScreen();
  const adding = Promise.withResolvers<void>();
  const terminal = new FakeTerminal({
    screen,
    functions: scriptedWorkers({ a: { adding: adding.promise }, b: {} }),
    onWait: (nowMs) => nowMs > 1_500 && adding.resolve(),
  });

  assert.equal(await terminal.run("worker", "add", "./a", "./b"), 0);

  assert.ok(screen.frames.some((frame) => /^\.\/a .*\n\.\/b [^\n]*$/.test(frame)));
  assert.match(
    screen.text,
    /^a +\d+ ms {2}ready\nb +\d+ ms {2}ready\na is ready: .*\nb is ready: .*$/,
  );
});

for (const platform of ["darwin", "windows"]) {
  Deno.test(`on ${platform} the default isolation is explained in one line, once`, async () => {
    const terminal = setup({ a: {}, b: {} }, { platform });

    assert.equal(await terminal.run("worker", "add", "./a", "./b"), 0);

    const notes = terminal.errLines.filter((line) => line.includes("microVMs need Linux"));
    assert.deepEqual(notes, [
      "microVMs need Linux, so workers run as plain processes here by default",
    ]);
  });
}

Deno.test("a requested isolation, or Linux, needs no explanation", async () => {
  const asked = setup({ a: {} }, { platform: "darwin" });
  const linux = setup({ a: {} });

  await asked.run("worker", "add", "./a", "--isolation", "process");
  await linux.run("worker", "add", "./a");

  assert.ok(!`${asked.errText}${linux.errText}`.includes("microVMs need Linux"));
});

Deno.test("worker add reports a worker that exists already, or is changed", async () => {
  const there = setup({ a: { added: false, before: {} } });
  const two = [1, 2].map((number) => replicaStatus({ number, started_at_ms: 9 }));
  const changed = setup({
    a: { added: false, changed: true, before: {}, states: [{ launch: 2, replicas: two }] },
  });

  assert.equal(await there.run("worker", "add", "./a"), 0);
  assert.equal(await changed.run("worker", "add", "./a", "--replicas", "2"), 0);

  assert.match(there.errText, /^a {2}\d+ ms {2}is in \/project\/config\.yaml already$/);
  assert.match(changed.errText, /^a {2}\d+ ms {2}changed in \/project\/config\.yaml$/);
});

Deno.test("worker add --force of a running worker waits for its next start", async () => {
  const terminal = setup({
    a: {
      added: false,
      before: { launch: 4 },
      states: [{ launch: 4 }, { launch: 4 }, {
        launch: 5,
        pid: 43,
        started_at_ms: 9,
        replicas: [],
      }],
    },
  });

  assert.equal(await terminal.run("worker", "add", "./a", "--force"), 0);
  assert.match(terminal.outText, /pid 43/);
});

Deno.test("worker add of a failed worker waits for its next outcome", async () => {
  const terminal = setup({
    a: {
      added: false,
      before: { state: "failed", launch: 1 },
      states: [{ state: "failed", launch: 1 }, { state: "starting", launch: 2 }, { launch: 2 }],
    },
  });

  assert.equal(await terminal.run("worker", "add", "./a"), 0);
});

for (const state of ["installing", "starting", "queued"] as const) {
  Deno.test(`worker add of a worker that is ${state} waits until it is ready`, async () => {
    const terminal = setup({
      a: {
        added: false,
        before: { state, launch: 1 },
        states: [{ state, launch: 1 }, { launch: 1 }],
      },
    });

    assert.equal(await terminal.run("worker", "add", "./a"), 0);
  });
}

for (
  const [args, message] of [
    [[""], /Missing worker\. Example: engine worker add/],
    [["./m", "--isolation", "jail"], /--isolation: expected microvm or process, received "jail"/],
    [["./m", "--timeout", "-1"], /--timeout: expected seconds or a time such as 90s/],
    [["./m", "--timeout", "soon"], /--timeout: expected .*received "soon"/],
    [["./m", "--wait-ms", "1"], /unknown option '--wait-ms'/],
    [["./m", "--replicas", "65"], /--replicas: expected 1 to 64/],
    [["./m", "port=1"], /is a directory; its configuration is in its engine\.worker\.yaml/],
  ] as const
) {
  Deno.test(`engine worker add ${args.join(" ")} is not understood`, async () => {
    const terminal = setup({});

    assert.equal(await terminal.run("worker", "add", ...args), 2);
    assert.match(terminal.errText, message);
    assert.deepEqual(terminal.addresses, []);
  });
}

const terminal = new FakeTerminal({ files: { "plain/engine.worker.yaml": "" } });

for (
  const [words, flags, requests] of [
    [["./workers/math"], {}, [{ path: "/project/workers/math" }]],
    [["../m"], { isolation: "process", force: true }, [
      { path: "/m", isolation: "process", reinstall: true },
    ]],
    [["/a"], { isolation: "microvm", accel: "tcg", replicas: "3" }, [
      { path: "/a", isolation: "microvm", accel: "tcg", replicas: 3 },
    ]],
    [["plain"], {}, [{ path: "/project/plain" }]],
    [["./a=b"], {}, [{ path: "/project/a=b" }]],
    [["engine-http", "port=3200", 'cors.origins=["http://a/"]'], {}, [
      { name: "engine-http", config: { port: 3200, cors: { origins: ["http://a/"] } } },
    ]],
    [["engine-state", "./a", "engine-http", "port=1", "plain"], { accel: "auto" }, [
      { name: "engine-state" },
      { path: "/project/a", accel: "auto" },
      { name: "engine-http", config: { port: 1 } },
      { path: "/project/plain", accel: "auto" },
    ]],
    [["engine-state"], { force: true }, [{ name: "engine-state" }]],
  ] as [string[], AddFlags, JsonObject[]][]
) {
  Deno.test(`engine worker add ${words.join(" ")} ${JSON.stringify(flags)} is understood`, async () => {
    const read = await readRequests(words, flags, terminal);

    assert.deepEqual(read.map(({ payload }) => payload), requests);
    assert.deepEqual(
      read.map(({ word }) => word),
      words.filter((word) => !/^[a-z.]+=/.test(word)),
    );
  });
}

for (
  const [words, flags, message] of [
    [[""], {}, /^Missing worker\. Example/],
    [["./a", ""], {}, /^Missing worker\. Example/],
    [["port=1"], {}, /^Which worker is port=1 for\? Its name comes first$/],
    [
      ["./a", "port=1"],
      {},
      /^\.\/a is a directory; its configuration is in its engine\.worker\.yaml$/,
    ],
    [["engine-http", "=1"], {}, /Not a field: =1/],
    [["./a", "./b/../a"], {}, /^\.\/b\/\.\.\/a is there twice$/],
    [["engine-state", "engine-state"], {}, /^engine-state is there twice$/],
    [["./a"], { isolation: "jail" }, /^--isolation: expected microvm or process, received "jail"$/],
    [["./a"], { accel: "hvf" }, /^--accel: expected auto, kvm or tcg, received "hvf"$/],
    [["./a"], { accel: "" }, /^--accel: expected auto, kvm or tcg, received ""$/],
    [["./a"], { replicas: "0" }, /^--replicas: expected 1 to 64, received "0"$/],
    [["./a"], { replicas: "two" }, /^--replicas: expected 1 to 64/],
    [["./a"], { isolation: "process", accel: "kvm" }, /^--accel is for microVMs/],
    [["engine-http"], { isolation: "process" }, /^--isolation is for workers that are directories/],
    [
      ["engine-http", "engine-state"],
      { replicas: "2" },
      /^--replicas is for .*; engine-http, engine-state/,
    ],
  ] as [string[], AddFlags, RegExp][]
) {
  Deno.test(`engine worker add ${JSON.stringify(words)} ${JSON.stringify(flags)} is not understood`, async () => {
    await assert.rejects(() => readRequests(words, flags, terminal), (thrown) => {
      assert.ok(thrown instanceof UsageError, String(thrown));
      assert.match(thrown.message, message);
      return true;
    });
  });
}

/** Adds workers of these names; `settle` lets all pending microtasks run. */
async function setupAdding(scripts: Record<string, Script>) {
  const terminal = new FakeTerminal({ functions: scriptedWorkers(scripts) });
  const engine = await terminal.connect({});
  const progress = showProgress(terminal);
  const ctrlC = new AbortController();
  const wanted = Object.keys(scripts).map((name) => ({
    word: `./${name}`,
    payload: { path: `/project/${name}` },
  }));
  const signal = ctrlC.signal;
  const adding = await addAll(wanted, { engine, terminal, progress, waits: true, signal });
  const settle = () => terminal.wait(0);
  await settle();
  return { terminal, adding, ctrlC, settle };
}

function names(terminal: FakeTerminal): string[] {
  return terminal.calls.filter(({ function_id }) => function_id.endsWith("::add"))
    .map(({ payload }) => (payload as { path: string }).path.replace("/project/", ""));
}

Deno.test("workers are requested one after the other, in their order", async () => {
  const first = Promise.withResolvers<void>();
  const it = await setupAdding({ a: { adding: first.promise }, b: {} });

  assert.deepEqual(names(it.terminal), ["a"]);
  assert.deepEqual(it.adding.map(({ name, isRequested }) => [name, isRequested]), [
    ["./a", true],
    ["./b", false],
  ]);

  first.resolve();
  await it.settle();
  assert.deepEqual(names(it.terminal), ["a", "b"]);
  assert.deepEqual(it.adding.map(({ name }) => name), ["a", "b"]);
});

Deno.test("a worker is followed as soon as it is added, independently of the others", async () => {
  const it = await setupAdding({ a: {}, b: { adding: new Promise(() => {}) } });

  await Promise.all(it.adding.map((each) => each.poll()));

  assert.deepEqual(it.adding.map(({ exitCode }) => exitCode), [0, undefined]);
});

Deno.test("after Ctrl-C no further worker is requested", async () => {
  const first = Promise.withResolvers<void>();
  const it = await setupAdding({ a: { adding: first.promise }, b: {} });

  it.ctrlC.abort();
  first.resolve();
  await it.settle();

  assert.deepEqual(names(it.terminal), ["a"]);
});

Deno.test("a worker that was given up before its request is not added", async () => {
  const first = Promise.withResolvers<void>();
  const it = await setupAdding({ a: { adding: first.promise }, b: {} });

  for (const each of it.adding) each.giveUp(1_000);
  first.resolve();
  await it.settle();

  assert.deepEqual(names(it.terminal), ["a"]);
  assert.deepEqual(it.adding.map(({ exitCode }) => exitCode), [3, 3]);
  assert.equal(it.terminal.errLines.length, 2);
});
