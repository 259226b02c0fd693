import assert from "node:assert/strict";
import { InvocationError, type Json, type JsonObject } from "../../../mod.ts";
import {
  type Answer,
  type FakeOptions,
  FakeScreen,
  FakeTerminal,
} from "../../../tests/fakes/fake_terminal.ts";
import { CommandError } from "../../failure.ts";

function setup(answer: Answer, more: { unreachable?: Error } = {}) {
  return new FakeTerminal({ functions: { "engine::supervisor::exec": answer }, ...more });
}

function ends(ended: JsonObject): FakeTerminal {
  return setup(() => ended);
}

Deno.test("worker exec passes on the command unchanged, with its own options", async () => {
  const terminal = ends({ code: 0, signal: null });

  const code = await terminal.run(
    "worker",
    "exec",
    "math",
    "--replica",
    "2",
    "--",
    "ls",
    "-l",
    "--url",
    "a b",
    "",
  );

  assert.equal(code, 0);
  const { input } = terminal.calls[0]!.payload as { input: string };
  assert.deepEqual(terminal.calls[0], {
    function_id: "engine::supervisor::exec",
    payload: { name: "math", command: ["ls", "-l", "--url", "a b", ""], replica: 2, input },
    timeout_ms: 660_000,
  });
  assert.deepEqual(terminal.errLines, []);
  assert.equal(terminal.openConnections, 0);
  assert.equal(terminal.interruptListeners, 0);
});

Deno.test("worker exec passes on the output byte for byte, in order", async () => {
  const terminal = setup((_payload, { onProgress }) => {
    onProgress?.({ stream: "stdout", data: "AP8K" });
    onProgress?.({ stream: "stderr", data: "w7w=" });
    onProgress?.({ stream: "stdout", data: "G1s=" });
    return { code: 0, signal: null };
  });

  await terminal.run("worker", "exec", "math", "--", "cat", "x");

  assert.deepEqual(terminal.pieces, [
    ["stdout", new Uint8Array([0, 255, 10])],
    ["stderr", new Uint8Array([0xc3, 0xbc])],
    ["stdout", new Uint8Array([0x1b, 0x5b])],
  ]);
  assert.deepEqual([terminal.outLines, terminal.errLines], [[], []]);
});

for (
  const [ended, exitCode] of [
    [{ code: 0, signal: null }, 0],
    [{ code: 1, signal: null }, 1],
    [{ code: 77, signal: null }, 77],
    [{ code: 255, signal: null }, 255],
    [{ code: null, signal: "SIGKILL" }, 137],
    [{ code: null, signal: "SIGTERM" }, 143],
    [{ code: null, signal: "SIGSEGV" }, 139],
    [{ code: null, signal: "SIGSTRANGE" }, 128],
    [{ code: null, signal: null }, 1],
  ] as const
) {
  Deno.test(`worker exec of a command that ended with ${JSON.stringify(ended)} ends with ${exitCode}`, async () => {
    const terminal = ends(ended);

    assert.equal(await terminal.run("worker", "exec", "math", "--", "x"), exitCode);
    assert.deepEqual(terminal.errLines, []);
  });
}

Deno.test("worker exec reports why the engine ended a command", async () => {
  const terminal = ends({ code: null, signal: "SIGKILL", reason: "out of memory (128 MiB)" });

  assert.equal(await terminal.run("worker", "exec", "math", "--", "x"), 137);
  assert.deepEqual(terminal.errLines, ["math: out of memory (128 MiB)"]);
});

for (
  const [code, message] of [
    ["NOT_FOUND", "There is no worker mth; there are: math"],
    ["INVALID_ARGUMENTS", "Worker math does not run, so nothing can run beside it"],
    ["FORBIDDEN", "Only the command line of the engine's own user on its machine may call it"],
    ["launch_failed", "x: command not found"],
  ] as const
) {
  Deno.test(`worker exec that the engine answers with ${code} ends with 1 and an error line`, async () => {
    const terminal = setup(() => {
      throw new InvocationError({ code, message }, "engine::supervisor::exec");
    });

    assert.equal(await terminal.run("worker", "exec", "math", "--", "x"), 1);
    assert.deepEqual(terminal.errLines, [`error: ${code}: ${message}`]);
    assert.deepEqual(terminal.pieces, []);
  });
}

Deno.test("worker exec without an engine ends with 1 and an error line", async () => {
  const unreachable = new CommandError("The engine is not running");
  const terminal = setup(() => null, { unreachable });

  assert.equal(await terminal.run("worker", "exec", "math", "--", "x"), 1);
  assert.deepEqual(terminal.errLines, ["error: The engine is not running"]);
});

Deno.test("Ctrl-C cancels the call, shows nothing more and ends with 130", async () => {
  let isCancelled = false;
  const terminal: FakeTerminal = setup((_payload, { signal, onProgress }) => {
    const ended = new Promise<Json>((_resolve, reject) => {
      signal?.addEventListener("abort", () => {
        isCancelled = true;
        onProgress?.({ stream: "stdout", data: "AA==" });
        reject(new InvocationError({ code: "cancelled", message: "Cancelled" }, "exec"));
      });
    });
    queueMicrotask(() => terminal.interrupt());
    return ended;
  });

  assert.equal(await terminal.run("worker", "exec", "math", "--", "sleep", "60"), 130);
  assert.ok(isCancelled);
  assert.deepEqual(terminal.pieces, []);
  assert.deepEqual(terminal.errLines, []);
  assert.equal(terminal.openConnections, 0);
});

for (
  const [args, message] of [
    [["math"], /missing required argument 'command'/],
    [["math", "--"], /missing required argument 'command'/],
    [["math", "ls", "-l"], /unknown option '-l'/],
    [["math", "--", ""], /Missing command\. Example: engine worker exec math-worker -- ls/],
    [["math", "--replica", "0", "--", "ls"], /--replica: expected 1 to 64, received "0"/],
    [
      ["math", "--replica", "--", "ls"],
      /--replica: expected 1 to 64, received "--"|argument missing/,
    ],
    [[], /missing required argument 'name'/],
  ] as const
) {
  Deno.test(`engine worker exec ${JSON.stringify(args)} is not understood`, async () => {
    const terminal = ends({ code: 0, signal: null });

    assert.equal(await terminal.run("worker", "exec", ...args), 2);
    assert.match(terminal.errText, message);
    assert.deepEqual(terminal.addresses, []);
  });
}

/** A command that ends once its input has, with what it got. */
function reads(typed: { pieces: string[]; isPiped?: boolean }, more: Partial<FakeOptions> = {}) {
  const got: JsonObject[] = [];
  const ended = Promise.withResolvers<Json>();
  const terminal = new FakeTerminal({
    functions: {
      "engine::supervisor::exec": () => ended.promise,
      "engine::supervisor::exec_input": (piece) => {
        got.push(piece);
        if (piece.end) ended.resolve({ code: 0, signal: null });
        return { is_open: !piece.end };
      },
    },
    typed,
    ...more,
  });
  return { terminal, got };
}

Deno.test("worker exec passes on standard input, each piece after the one before was taken", async () => {
  const { terminal, got } = reads({ pieces: ["a\n", "b"], isPiped: true });

  assert.equal(await terminal.run("worker", "exec", "math", "--", "cat"), 0);

  const { input } = terminal.calls[0]!.payload as { input: string };
  assert.deepEqual(got, [{ input, data: btoa("a\n") }, { input, data: btoa("b") }, {
    input,
    end: true,
  }]);
  assert.deepEqual(terminal.rawModes, []);
});

Deno.test("worker exec --tty passes on size and kind of the terminal, and puts it back", async () => {
  const screen = new FakeScreen(91, 17);
  const { terminal } = reads({ pieces: ["\x03"] }, { screen, variables: { TERM: "screen" } });

  assert.equal(await terminal.run("worker", "exec", "math", "--tty", "--", "sh"), 0);

  const { payload, timeout_ms } = terminal.calls[0]!;
  assert.deepEqual((payload as JsonObject).tty, { columns: 91, rows: 17, term: "screen" });
  assert.equal(timeout_ms, 604_800_000);
  assert.deepEqual(terminal.rawModes, [true, false]);
});

Deno.test("worker exec --tty puts the terminal back when the worker ends", async () => {
  const functions = {
    "engine::supervisor::exec": () => {
      const body = { code: "launch_failed", message: "Worker math is being ended" };
      throw new InvocationError(body, "engine::supervisor::exec");
    },
  };
  const terminal = new FakeTerminal({ functions, typed: { pieces: [] } });

  assert.equal(await terminal.run("worker", "exec", "math", "--tty", "--", "sh"), 1);
  assert.deepEqual(terminal.rawModes, [true, false]);
});

Deno.test("worker exec --tty needs a terminal", async () => {
  const { terminal } = reads({ pieces: [], isPiped: true });

  assert.equal(await terminal.run("worker", "exec", "math", "--tty", "--", "sh"), 2);
  assert.match(terminal.errText, /--tty needs a terminal as standard input/);
});
