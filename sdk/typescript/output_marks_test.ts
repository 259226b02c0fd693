import assert from "node:assert/strict";
import { CallScopes } from "./call_scope.ts";
import { type MarkedConsole, markOutput, printAsLogger } from "./output_marks.ts";

const TRACE = "0af7651916cd43dd8448eb211c80319c";
const SPAN = "b7ad6b7169203331";
const MARK = `\u001b]engine;${TRACE}-${SPAN}\u0007`;

function setup(variable: string | undefined = "1") {
  const printed: unknown[][] = [];
  const print = (...values: unknown[]) => void printed.push(values);
  const target = { log: print, info: print, warn: print, error: print, debug: print };
  if (variable !== undefined) Deno.env.set("ENGINE_OUTPUT_MARKS", variable);
  markOutput(target);
  Deno.env.delete("ENGINE_OUTPUT_MARKS");
  const scopes = new CallScopes();
  const handle = (task: (target: MarkedConsole) => void): unknown[][] => {
    scopes.show();
    const traceparent = `00-${TRACE}-${SPAN}-01`;
    scopes.run({ deadline: undefined, traceparent, baggage: undefined }, () => task(target));
    scopes.hide();
    return printed;
  };
  return { handle, printed, target };
}

for (const method of ["log", "info", "warn", "error", "debug"] as const) {
  Deno.test(`markOutput() marks what console.${method} prints in a handler`, () => {
    assert.deepEqual(setup().handle((target) => target[method]("hello")), [[`${MARK}hello`]]);
  });
}

Deno.test("markOutput() leaves what is printed outside of handlers alone", () => {
  const { printed, target } = setup();

  target.log("hello", 5);

  assert.deepEqual(printed, [["hello", 5]]);
});

const SHOWN: [string, unknown[], string][] = [
  ["nothing", [], MARK],
  ["several texts", ["a", "b"], `${MARK}a b`],
  ["a value", [{ a: [1] }], `${MARK}{ a: [ 1 ] }`],
  ["a value between texts", ["a", 5, "%s"], `${MARK}a 5 %s`],
  ["a text of several lines", ["a\nb\n"], `${MARK}a\n${MARK}b\n${MARK}`],
  ["a per cent sign", ["100 %"], `${MARK}100 %`],
];
for (const [name, values, text] of SHOWN) {
  Deno.test(`markOutput() prints ${name} as it was, line by line`, () => {
    assert.deepEqual(setup().handle((target) => target.log(...values)), [[text]]);
  });
}

Deno.test("markOutput() marks every line of an error", () => {
  const [[text]] = setup().handle((target) => target.error(new Error("broken"))) as [[string]];

  const lines = text.split("\n");
  assert.ok(lines.length > 1);
  assert.ok(lines.every((line) => line.startsWith(MARK)));
});

Deno.test("markOutput() leaves putting values into a text to the console", () => {
  const printed = setup().handle((target) => target.log("%s is\n%d", "a\nb", 5));

  assert.deepEqual(printed, [[`${MARK}%s is\n${MARK}%d`, `a\n${MARK}b`, 5]]);
});

Deno.test("markOutput() prints a value that cannot be shown without a mark", () => {
  const value = {
    get [Symbol.toStringTag](): string {
      throw new Error("no");
    },
  };
  const shown = setup().handle((target) => target.log(value));

  assert.equal(shown.length, 1);
});

Deno.test("markOutput() marks once, however often it is asked", () => {
  const { handle, target } = setup();
  Deno.env.set("ENGINE_OUTPUT_MARKS", "1");
  markOutput(target);
  Deno.env.delete("ENGINE_OUTPUT_MARKS");

  assert.deepEqual(handle(() => target.log("hello")), [[`${MARK}hello`]]);
});

for (const variable of [undefined, "0", "true"]) {
  Deno.test(`markOutput() does nothing with ENGINE_OUTPUT_MARKS=${variable}`, () => {
    const { handle } = setup(variable ?? "");

    assert.deepEqual(handle((target) => target.log("hello", 5)), [["hello", 5]]);
  });
}

Deno.test("printAsLogger() says so in the mark, in a handler and outside", () => {
  const { handle, printed, target } = setup();

  handle(() => printAsLogger(() => target.info("INFO  a\nb")));
  printAsLogger(() => target.info("INFO  c"));
  target.info("d");

  const inside = MARK.replace("\u0007", ";logger\u0007");
  const outside = "\u001b]engine;;logger\u0007";
  assert.deepEqual(printed, [[`${inside}INFO  a\n${inside}b`], [`${outside}INFO  c`], ["d"]]);
});

Deno.test("printAsLogger() is over when printing fails", () => {
  const { printed, target } = setup();

  assert.throws(() =>
    printAsLogger(() => {
      throw new Error("closed");
    })
  );
  target.log("after");

  assert.deepEqual(printed, [["after"]]);
});
