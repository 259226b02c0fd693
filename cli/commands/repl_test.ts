import { Command } from "@commander-js/extra-typings";
import assert from "node:assert/strict";
import { FakeTerminal } from "../../tests/fakes/fake_terminal.ts";
import { UsageError } from "../failure.ts";
import { addRepl, type LineReader, readCall, type ReadOptions, splitWords } from "./repl.ts";

const ADD = {
  function_id: "math::add",
  worker_name: "math",
  request_schema: { type: "object", properties: { a: {}, b: {} }, required: ["a", "b"] },
};

/** A session whose lines come from a test, which may also use what a terminal gets. */
function setup(
  lines: readonly string[],
  { isTerminal = false, use }: {
    isTerminal?: boolean;
    use?: (options: ReadOptions, terminal: FakeTerminal) => Promise<void>;
  } = {},
) {
  const terminal = new FakeTerminal({
    functions: {
      "math::add": ({ a, b }) => ({ c: Number(a) + Number(b) }),
      "engine::functions::list": ({ search }) => ({
        functions: [ADD, { function_id: "mail::send" }]
          .filter(({ function_id }) => function_id.includes(String(search ?? ""))),
      }),
      "engine::functions::info": () => ADD,
    },
  });
  const reader: LineReader = {
    isTerminal,
    async *read(options) {
      for (const line of lines) yield line;
      await use?.(options, terminal);
    },
  };
  const program = new Command("engine").exitOverride() as Command;
  addRepl(program, terminal, reader);
  return { terminal, run: () => terminal.runWith(program, "repl") };
}

Deno.test("each line is a call, and results are values on standard output", async () => {
  const { terminal, run } = setup([
    "math::add a=2 b=3",
    "",
    "# a remark",
    '  math::add {"a":1,"b":1}',
  ]);

  assert.equal(await run(), 0);
  assert.deepEqual(terminal.outLines, ['{ "c": 5 }', '{ "c": 2 }']);
  assert.deepEqual(terminal.errLines, []);
});

Deno.test("a failed line is printed, the next one runs, and a script ends with 1", async () => {
  const lines = ["math::sub a=1", "math::add a=", ".exti", "math::add a=1 b=1"];
  const { terminal, run } = setup(lines);

  assert.equal(await run(), 1);
  assert.match(terminal.errText, /function_not_found: Function math::sub not found/);
  assert.match(terminal.errText, /Unknown command \.exti; there are \.exit, /);
  assert.equal(terminal.outLines.at(-1), '{ "c": 2 }');
});

Deno.test("a person's session ends with 0, and shows times", async () => {
  const { terminal, run } = setup(["math::sub", "math::add a=1 b=1"], { isTerminal: true });

  assert.equal(await run(), 0);
  assert.match(terminal.errText, /^Connected to ws:\/\/127\.0\.0\.1:49134/);
  assert.match(terminal.errText, /\(\d+ m?s\)/);
});

Deno.test(".functions, .help and .why", async () => {
  const lines = [
    ".functions mail",
    ".help math::add",
    ".help",
    ".why",
    "math::add a=1 b=1",
    ".why",
  ];
  const { terminal, run } = setup(lines, { isTerminal: true });

  await run();

  assert.equal(terminal.outLines[0], "mail::send");
  assert.match(terminal.outText, /Payload:\n {2}a +anything +required/);
  assert.match(terminal.outText, /\.functions \[SEARCH\]/);
  assert.match(terminal.errText, /Nothing was called yet/);
  assert.match(terminal.outLines.at(-1)!, /^engine why [0-9a-f]{32}$/);
});

Deno.test(".exit ends the session", async () => {
  const { terminal, run } = setup([".exit", "math::add a=1 b=1"]);

  assert.equal(await run(), 0);
  assert.deepEqual(terminal.outLines, []);
  assert.equal(terminal.openConnections, 0);
});

Deno.test("completion offers ids, commands, and fields that are not given", async () => {
  const offered: Record<string, readonly string[]> = {};
  const { run } = setup([], {
    use: async ({ complete }) => {
      const lines = [
        "ma",
        ".h",
        "math::add ",
        "math::add a=1 ",
        "math::add b",
        ".help ma",
        ".why x",
      ];
      for (const line of lines) offered[line] = await complete(line);
    },
  });

  await run();

  assert.deepEqual(offered, {
    "ma": ["math::add", "mail::send"],
    ".h": [".help"],
    "math::add ": ["a=", "b="],
    "math::add a=1 ": ["b="],
    "math::add b": ["b="],
    ".help ma": ["math::add", "mail::send"],
    ".why x": [],
  });
});

Deno.test("Ctrl-C cancels the call that runs, and does nothing when none runs", async () => {
  const answers: boolean[] = [];
  let interrupt = (): boolean => false;
  const terminal = new FakeTerminal({
    functions: {
      "a::b": (_payload, { signal }) => {
        answers.push(interrupt());
        return Promise.reject(new Error(signal!.aborted ? "cancelled" : "goes on"));
      },
    },
  });
  const reader: LineReader = {
    isTerminal: true,
    async *read(options) {
      interrupt = options.interrupt;
      answers.push(interrupt());
      yield await Promise.resolve("a::b");
    },
  };
  const program = new Command("engine").exitOverride() as Command;
  addRepl(program, terminal, reader);

  assert.equal(await terminal.runWith(program, "repl"), 0);
  assert.deepEqual(answers, [false, true]);
  assert.equal(terminal.errLines.at(-1), "error: cancelled");
});

for (
  const [line, words] of [
    ["a=1  b=2", ["a=1", "b=2"]],
    ["name='Ann Lee' x=1", ["name=Ann Lee", "x=1"]],
    ['name="Ann \\"A\\" Lee"', ['name=Ann "A" Lee']],
    ['items=["tea","milk"]', ['items=["tea","milk"]']],
    ['user={"name":"Ann Lee"}', ['user={"name":"Ann Lee"}']],
    ["a=b\\ c", ["a=b c"]],
    ["", []],
  ] as const
) {
  Deno.test(`splitWords(${JSON.stringify(line)})`, () => {
    assert.deepEqual(splitWords(line), words);
  });
}

for (
  const [line, message] of [
    ["a::b name='x", /A quote is not closed/],
    ['a::b {"a":', /The payload is not JSON/],
    ["a=1 b=2", /The id of the function comes first/],
    ["a::b word", /Not a field: word/],
  ] as const
) {
  Deno.test(`the line ${line} is not understood`, () => {
    assert.throws(
      () => readCall(line),
      (thrown) => thrown instanceof UsageError && message.test(thrown.message),
    );
  });
}

for (const [text, payload] of [["[1]", [1]], ["null", null], ["-1", -1], ['"x"', "x"], ["", {}]]) {
  Deno.test(`a::b ${text} has that payload`, () => {
    assert.deepEqual(readCall(`a::b ${text}`), { function_id: "a::b", payload });
  });
}
