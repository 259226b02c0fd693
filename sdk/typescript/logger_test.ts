import assert from "node:assert/strict";
import {
  FailurePrinter,
  FAILURES_PRINTED_MAX,
  FAILURES_WINDOW_MS,
  type LogEntry,
  Logger,
  type LogTarget,
  type MarkedConsole,
  markOutput,
  printAsLogger,
  printError,
  setDefaultWorker,
  setLogSink,
} from "./logger.ts";
import type { CallRequest, ConnectionState } from "./options.ts";
import { CallScopes } from "./trace_context.ts";
import type { Json } from "./wire/protocol.ts";

interface FakeTarget extends LogTarget {
  connectionState: ConnectionState;
  readonly requests: CallRequest[];
}

function target(connectionState: ConnectionState = "connected"): FakeTarget {
  const requests: CallRequest[] = [];
  const trigger = (request: CallRequest): Promise<undefined> => {
    requests.push(request);
    return Promise.resolve(undefined);
  };
  return { name: "shop", connectionState, requests, trigger };
}

/** The lines that `task` prints, with their methods. */
function printed(task: () => void): string[] {
  const lines: string[] = [];
  const methods = ["debug", "info", "warn", "error"] as const;
  const originals = methods.map((method) => console[method]);
  for (const method of methods) {
    console[method] = (text: string) => lines.push(`${method}: ${text}`);
  }
  try {
    task();
  } finally {
    methods.forEach((method, i) => console[method] = originals[i]!);
  }
  return lines;
}

Deno.test("Logger prints level, name, message and data", () => {
  const logger = new Logger(target());

  const lines = printed(() => {
    logger.trace("one");
    logger.debug("two", { n: 2 });
    logger.info("three", null);
    logger.warn("four", [4]);
    logger.error("five", "text");
  });

  assert.deepEqual(lines, [
    "debug: TRACE [shop] one",
    'debug: DEBUG [shop] two {"n":2}',
    "info: INFO  [shop] three null",
    "warn: WARN  [shop] four [4]",
    'error: ERROR [shop] five "text"',
  ]);
});

Deno.test("Logger sends each line as a void call of the function of its level", () => {
  const worker = target();

  printed(() => {
    new Logger(worker).info("accepted", { order: 7 });
    new Logger(worker, "billing").error("lost");
  });

  const action = { type: "void" };
  assert.deepEqual(worker.requests, [
    {
      function_id: "engine::log::info",
      action,
      payload: { message: "accepted", data: { order: 7 }, service_name: "shop" },
    },
    {
      function_id: "engine::log::error",
      action,
      payload: { message: "lost", service_name: "billing" },
    },
  ]);
});

Deno.test("Logger adds the trace of the running handler", () => {
  const worker = target();
  const scopes = new CallScopes();
  const [trace_id, span_id] = ["a".repeat(32), "b".repeat(16)];
  const traceparent = `00-${trace_id}-${span_id}-00`;
  scopes.attach();

  printed(() =>
    scopes.run(
      { deadline: undefined, traceparent, baggage: undefined },
      () => new Logger(worker).info("inside"),
    )
  );
  scopes.detach();

  const [request] = worker.requests;
  const payload = { message: "inside", service_name: "shop", trace_id, span_id };
  assert.deepEqual(request!.payload, payload);
});

Deno.test("Logger passes lines to the sink of a worker and makes no calls", () => {
  const lines: LogEntry[] = [];
  const worker = target("reconnecting");
  setLogSink(worker, { takeLog: (line) => lines.push(line) > 0 });
  const big = 3n as unknown as Json;

  const shown = printed(() => {
    new Logger(worker).info("one", { n: 1 });
    new Logger(worker, "billing").error("two");
    new Logger(worker).warn("three", big);
  });

  assert.deepEqual(lines, [
    { level: "info", message: "one", data: { n: 1 }, shown: '{"n":1}', service: "shop" },
    { level: "error", message: "two", data: undefined, shown: undefined, service: "billing" },
    { level: "warn", message: "three", data: big, shown: "3", service: "shop" },
  ]);
  assert.equal(shown.length, 3);
  assert.deepEqual(worker.requests, []);
});

Deno.test("Logger marks lines that are also sent to the engine", () => {
  const [sent, kept] = [target(), target("failed")];

  const lines = printed(() => {
    Deno.env.set("ENGINE_OUTPUT_MARKS", "1");
    markOutput();
    Deno.env.delete("ENGINE_OUTPUT_MARKS");
    new Logger(sent).info("one");
    new Logger(kept).info("two");
  });

  assert.deepEqual(lines, [
    "info: \u001b]engine;;logger\u0007INFO  [shop] one",
    "info: INFO  [shop] two",
  ]);
});

Deno.test("Logger prints a line that the sink drops without a mark", () => {
  const worker = target();
  setLogSink(worker, { takeLog: () => false });

  assert.deepEqual(printed(() => new Logger(worker).info("one")), ["info: INFO  [shop] one"]);
  assert.deepEqual(worker.requests, []);
});

Deno.test("new Logger() uses the worker that was registered last", () => {
  const logger = new Logger();
  const [first, second] = [target(), target()];

  printed(() => {
    setDefaultWorker(first);
    logger.info("one");
    setDefaultWorker(second);
    logger.info("two");
  });

  assert.deepEqual([first, second].map(({ requests }) => requests.length), [1, 1]);
});

Deno.test("Logger does not throw if a call fails, or for data that JSON cannot represent", async () => {
  const worker = target();
  const cycle: Record<string, unknown> = {};
  cycle.self = cycle;
  const failing: LogTarget = { ...target(), trigger: () => Promise.reject(new Error("no")) };

  const lines = printed(() => {
    new Logger(failing).info("one");
    new Logger(worker).info("two", cycle as Json);
    new Logger(worker).info("three", 3n as unknown as Json);
  });
  await Promise.resolve();

  assert.deepEqual(lines.slice(1), [
    "info: INFO  [shop] two [object Object]",
    "info: INFO  [shop] three 3",
  ]);
  const data = worker.requests.map(({ payload }) => (payload as { data: Json }).data);
  assert.deepEqual(data, ["[object Object]", "3"]);
});

Deno.test("Logger does not throw if the console throws", () => {
  const { info } = console;
  const worker = target();
  console.info = () => {
    throw new Error("closed");
  };
  try {
    new Logger(worker).info("one");
  } finally {
    console.info = info;
  }

  assert.equal(worker.requests.length, 1);
});

Deno.test("Logger limits the number of lines that are queued without a connection", () => {
  const worker = target("reconnecting");
  const logger = new Logger(worker);

  printed(() => {
    for (let i = 0; i < 1_005; i++) logger.info("waits");
    assert.equal(worker.requests.length, 1_000);

    worker.connectionState = "connected";
    logger.info("goes out");
  });

  assert.equal(worker.requests.length, 1_001);
});

for (const state of ["failed", "disconnected"] as const) {
  Deno.test(`Logger only prints when the worker is ${state}`, () => {
    const worker = target(state);

    const lines = printed(() => new Logger(worker).warn("late"));

    assert.deepEqual(lines, ["warn: WARN  [shop] late"]);
    assert.deepEqual(worker.requests, []);
  });
}

Deno.test("printError() prints one line without control characters", () => {
  const error = new Error("refused:\n\u001b[2J\u009b1mno\u202e!\tReally\r");

  assert.deepEqual(printed(() => printError(error)), [
    "error: [engine] refused: [2J1mno! Really",
  ]);
});

Deno.test("FailurePrinter prints a stack as lines, a bounded number, and counts the rest", () => {
  let now = 0;
  const printer = new FailurePrinter(() => now);
  const stack = "TypeError: no\u001b[2J\n    at f (shop.ts:1)";

  assert.deepEqual(printed(() => printer.print("a::b", stack)), [
    "error: [engine] a::b failed:\n  TypeError: no[2J\n      at f (shop.ts:1)",
  ]);
  const many = printed(() => {
    for (let i = 0; i < FAILURES_PRINTED_MAX + 4; i++) printer.print("a::b", stack);
  });
  assert.equal(many.length, FAILURES_PRINTED_MAX - 1);
  now = FAILURES_WINDOW_MS;
  const [first, ...more] = printed(() => printer.print("a::b", stack));
  assert.equal(first, "error: [engine] 5 more failed calls were not printed");
  assert.equal(more.length, 1);
});

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
    scopes.attach();
    const traceparent = `00-${TRACE}-${SPAN}-01`;
    scopes.run({ deadline: undefined, traceparent, baggage: undefined }, () => task(target));
    scopes.detach();
    return printed;
  };
  return { handle, printed, target };
}

for (const method of ["log", "info", "warn", "error", "debug"] as const) {
  Deno.test(`markOutput() marks the output of console.${method} in a handler`, () => {
    assert.deepEqual(setup().handle((target) => target[method]("hello")), [[`${MARK}hello`]]);
  });
}

Deno.test("markOutput() does not mark output outside of handlers", () => {
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
  Deno.test(`markOutput() prints ${name} unchanged after the mark`, () => {
    assert.deepEqual(setup().handle((target) => target.log(...values)), [[text]]);
  });
}

Deno.test("markOutput() marks every line of an error", () => {
  const [[text]] = setup().handle((target) => target.error(new Error("broken"))) as [[string]];

  const lines = text.split("\n");
  assert.ok(lines.length > 1);
  assert.ok(lines.every((line) => line.startsWith(MARK)));
});

Deno.test("markOutput() leaves format strings to the console", () => {
  const printed = setup().handle((target) => target.log("%s is\n%d", "a\nb", 5));

  assert.deepEqual(printed, [[`${MARK}%s is\n${MARK}%d`, `a\n${MARK}b`, 5]]);
});

Deno.test("markOutput() prints a value that cannot be inspected without a mark", () => {
  const value = {
    get [Symbol.toStringTag](): string {
      throw new Error("no");
    },
  };
  const shown = setup().handle((target) => target.log(value));

  assert.equal(shown.length, 1);
});

Deno.test("markOutput() marks a console once", () => {
  const { handle, target } = setup();
  Deno.env.set("ENGINE_OUTPUT_MARKS", "1");
  markOutput(target);
  Deno.env.delete("ENGINE_OUTPUT_MARKS");

  assert.deepEqual(handle(() => target.log("hello")), [[`${MARK}hello`]]);
});

for (const variable of [undefined, "0", "true"]) {
  Deno.test(`markOutput() has no effect with ENGINE_OUTPUT_MARKS=${variable}`, () => {
    const { handle } = setup(variable ?? "");

    assert.deepEqual(handle((target) => target.log("hello", 5)), [["hello", 5]]);
  });
}

Deno.test("printAsLogger() adds logger to the mark, inside and outside of handlers", () => {
  const { handle, printed, target } = setup();

  handle(() => printAsLogger(() => target.info("INFO  a\nb")));
  printAsLogger(() => target.info("INFO  c"));
  target.info("d");

  const inside = MARK.replace("\u0007", ";logger\u0007");
  const outside = "\u001b]engine;;logger\u0007";
  assert.deepEqual(printed, [[`${inside}INFO  a\n${inside}b`], [`${outside}INFO  c`], ["d"]]);
});

Deno.test("printAsLogger() ends when printing throws", () => {
  const { printed, target } = setup();

  assert.throws(() =>
    printAsLogger(() => {
      throw new Error("closed");
    })
  );
  target.log("after");

  assert.deepEqual(printed, [["after"]]);
});
