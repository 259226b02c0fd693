/**
 * Plain command lines are read as the parser reads them.
 *
 * @module
 */
import assert from "node:assert/strict";
import { Command } from "@commander-js/extra-typings";
import { FakeTerminal } from "../tests/fakes/fake_terminal.ts";
import { START_OPTIONS } from "./commands/start.ts";
import { TRIGGER_OPTIONS } from "./commands/trigger.ts";
import { type PlainOptions, readPlain } from "./plain_words.ts";
import { createProgram } from "./program.ts";

/** As the parser reads it; `undefined` when it refuses. */
function parsed(args: readonly string[], { valued, flags }: PlainOptions): object | undefined {
  const command = new Command().argument("[words...]").exitOverride().helpOption(false)
    .configureOutput({ writeErr: () => {} });
  for (const name of valued) command.option(`${name} <value>`);
  for (const name of flags) command.option(name);
  let read: object | undefined;
  command.action((words, options) => void (read = { words, options: { ...options } }));
  try {
    command.parse([...args], { from: "user" });
  } catch {
    return undefined;
  }
  return read;
}

const PIECES = [
  ...["a::b", "x=1", "x=-1", "-", "", "=", "--", "-1", "-x", "--no-json", "--js", "--jsonx"],
  ...["--json", "--json=1", "--raw", "--url", "--url=", "--url=a=b", "--payload", "--payload=-"],
  ...["--timeout-ms", "--timeout-ms=5", "--timeout", "--help", "-h", "{}", "two words"],
];

Deno.test("readPlain() reads what the parser reads, or leaves it to the parser", () => {
  let seed = 1;
  const random = (below: number): number => {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
    return Math.floor(seed / 2 ** 31 * below);
  };
  let plain = 0;
  for (let i = 0; i < 3_000; i++) {
    const args = Array.from({ length: random(6) }, () => PIECES[random(PIECES.length)]!);
    const read = readPlain(args, TRIGGER_OPTIONS);
    if (!read) continue;
    plain++;
    assert.deepEqual(read, parsed(args, TRIGGER_OPTIONS), JSON.stringify(args));
  }
  assert.ok(plain > 500, `${plain} of them were plain`);
});

for (const args of [["--what"], ["--json=1"], ["--url"], ["-h"], ["--help"], ["a", "--", "b"]]) {
  Deno.test(`readPlain() leaves ${args.join(" ")} to the parser`, () => {
    assert.equal(readPlain(args, TRIGGER_OPTIONS), undefined);
  });
}

Deno.test("the options of plain command lines are those the parser was told", async () => {
  const program = await createProgram(new FakeTerminal());
  const trigger = program.commands.find((command) => command.name() === "trigger")!;

  for (
    const [command, { valued, flags }] of [[program, START_OPTIONS], [
      trigger,
      TRIGGER_OPTIONS,
    ]] as const
  ) {
    const options = command.options.filter(({ long }) => !["--help", "--version"].includes(long!));
    assert.deepEqual(
      options.filter((o) => o.required).map((o) => o.long).sort(),
      [...valued].sort(),
    );
    assert.deepEqual(
      options.filter((o) => !o.required).map((o) => o.long).sort(),
      [
        ...flags,
      ].sort(),
    );
  }
});
