import assert from "node:assert/strict";
import type { Json, JsonObject } from "../../mod.ts";
import { type FakeOptions, FakeTerminal } from "../../tests/fakes/fake_terminal.ts";

const ADD = { function_id: "math::add", description: "Add", response_schema: { type: "number" } };

/** An engine that has these functions. */
function functionsOf(live: () => readonly JsonObject[]): NonNullable<FakeOptions["functions"]> {
  return {
    "engine::functions::list": ({ cursor }) => {
      const half = Math.ceil(live().length / 2);
      if (cursor === undefined) return { functions: live().slice(0, half), next_cursor: "2" };
      return { functions: live().slice(half) } as Json;
    },
    "engine::functions::info": ({ function_ids, namespace }) => ({
      functions: (function_ids as string[]).map((id) =>
        live().find((each) => each.function_id === id && namespace === "default") ??
          { function_id: id, error: "not_found" }
      ),
    }),
  };
}

Deno.test("engine types writes a client to standard output, or to a file", async () => {
  const live = [ADD, { function_id: "shop::price" }, { function_id: "x::y", namespace: "eu" }];
  const terminal = new FakeTerminal({ functions: functionsOf(() => live) });

  assert.equal(await terminal.run("types", "--lang", "ts", "math::"), 0);
  assert.equal(await terminal.run("types", "--lang", "py", "--out", "api.py"), 0);

  assert.match(
    terminal.outText,
    /add\(payload\?: unknown, options\?: CallOptions\): Promise<number>;/,
  );
  assert.doesNotMatch(terminal.outText, /price/);
  assert.match(terminal.written.get("api.py")!, /def price\(/);
  assert.doesNotMatch(terminal.written.get("api.py")!, /x::y/);
  assert.deepEqual(terminal.errLines, ["Wrote 2 functions to api.py"]);
});

Deno.test("engine types asks for schemas of 32 functions at a time", async () => {
  const live = Array.from({ length: 70 }, (_, i) => ({ function_id: `a::f${i}` }));
  const terminal = new FakeTerminal({ functions: functionsOf(() => live) });

  await terminal.run("types", "--lang", "ts");

  const asked = terminal.calls.filter(({ function_id }) =>
    function_id === "engine::functions::info"
  );
  const counts = asked.map(({ payload }) =>
    ((payload as JsonObject).function_ids as Json[]).length
  );
  assert.deepEqual(counts, [32, 32, 6]);
});

Deno.test("engine types rejects what it cannot do", async () => {
  for (
    const [args, message] of [
      [["--lang", "go"], '--lang: expected ts or py, received "go"'],
      [["--lang", "ts", "--watch"], "--watch: add --out FILE, the file to write"],
    ] as const
  ) {
    const terminal = new FakeTerminal();
    assert.equal(await terminal.run("types", ...args), 2);
    assert.match(terminal.errText, new RegExp(message));
  }
});

/** Runs `--watch`; `steps` run before each look at the functions, then Ctrl-C. */
async function watch(steps: (() => void)[], live: () => readonly JsonObject[], files = {}) {
  const terminal: FakeTerminal = new FakeTerminal({
    functions: functionsOf(live),
    files,
    onWait: () => {
      const step = steps.shift();
      if (step) step();
      else terminal.interrupt();
    },
  });
  const code = await terminal.run("types", "--lang", "ts", "--out", "api.ts", "--watch");
  return { terminal, code };
}

Deno.test("engine types --watch writes the file when functions change, and only then", async () => {
  let live: JsonObject[] = [ADD];
  const nothing = () => {};

  const { terminal, code } = await watch([
    ...[nothing, nothing, nothing, nothing],
    ...[() => void (live = [ADD, { function_id: "math::sub" }]), nothing, nothing],
    ...[() => void (live = [{ ...ADD, description: "Changed" }, live[1]!]), nothing, nothing],
  ], () => live);

  assert.equal(code, 0);
  assert.deepEqual(terminal.errLines, [
    "Wrote 1 function to api.ts",
    "Wrote 2 functions to api.ts",
    "Wrote 2 functions to api.ts",
  ]);
  assert.match(terminal.written.get("api.ts")!, /Changed/);
});

Deno.test("engine types --watch does not touch a file that is as it would write it", async () => {
  const once = new FakeTerminal({ functions: functionsOf(() => [ADD]) });
  await once.run("types", "--lang", "ts", "--out", "api.ts");

  const { terminal } = await watch([() => {}], () => [ADD], {
    "api.ts": once.written.get("api.ts")!,
  });

  assert.equal(terminal.written.size, 0);
});

Deno.test("engine types --watch keeps a function whose worker restarts", async () => {
  let live: JsonObject[] = [ADD];
  const nothing = () => {};
  const gone = () => void (live = []);
  const back = () => void (live = [ADD]);

  const { terminal } = await watch([nothing, gone, back, nothing, gone], () => live);
  assert.deepEqual(terminal.errLines, ["Wrote 1 function to api.ts"]);

  live = [ADD];
  const late = await watch([nothing, gone, ...Array(6).fill(nothing)], () => live);
  assert.deepEqual(late.terminal.errLines, [
    "Wrote 1 function to api.ts",
    "Wrote 0 functions to api.ts",
  ]);
});

Deno.test("engine types --watch connects again to an engine that restarts", async () => {
  let isLost = false;
  const functions = functionsOf(() => [ADD]);
  const list = functions["engine::functions::list"]!;
  const terminal: FakeTerminal = new FakeTerminal({
    functions: {
      ...functions,
      "engine::functions::list": (payload, options) => {
        if (isLost) throw new Error("The connection to the engine was lost");
        return list(payload, options);
      },
    },
    onWait: () => {
      if (terminal.addresses.length === 1) isLost = true;
      else if (terminal.errLines.length > 1 && isLost) isLost = false;
      else terminal.interrupt();
    },
  });

  await terminal.run("types", "--lang", "ts", "--out", "api.ts", "--watch");

  assert.deepEqual(terminal.errLines.slice(0, 2), [
    "Wrote 1 function to api.ts",
    "Not connected; retrying in the background",
  ]);
  assert.equal(terminal.openConnections, 0);
});
