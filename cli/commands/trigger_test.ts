import assert from "node:assert/strict";
import { InvocationError } from "../../mod.ts";
import { FakeTerminal } from "../../tests/fakes/fake_terminal.ts";
import { CommandError, ConnectionLost } from "../failure.ts";

const add = ({ a, b }: { a?: unknown; b?: unknown }) => ({ c: Number(a ?? 0) + Number(b ?? 0) });

Deno.test("both ways of calling a function print its result on one line", async () => {
  const terminal = new FakeTerminal({ functions: { "math::add": add } });

  assert.equal(await terminal.run("trigger", "math::add", "a=2", "b=3"), 0);
  assert.equal(
    await terminal.run("trigger", "--function-id=math::add", '--payload={"a":2,"b":3}'),
    0,
  );

  assert.deepEqual(terminal.outLines, ['{ "c": 5 }', '{ "c": 5 }']);
  assert.deepEqual(terminal.errLines, []);
  assert.equal(terminal.openConnections, 0);
});

Deno.test("a payload comes from a file, from standard input, or is an empty object", async () => {
  const terminal = new FakeTerminal({
    functions: { "math::add": add },
    files: { "two.json": '{"a":2}' },
    input: '{"a":3}',
  });

  await terminal.run("trigger", "math::add", "--payload", "@two.json");
  await terminal.run("trigger", "math::add", "b=1", "--payload", "-");
  await terminal.run("trigger", "math::add");

  assert.deepEqual(terminal.calls.map(({ payload }) => payload), [{ a: 2 }, { a: 3, b: 1 }, {}]);
});

Deno.test("a function that returns nothing prints null", async () => {
  const terminal = new FakeTerminal({ functions: { "a::b": () => undefined } });

  assert.equal(await terminal.run("trigger", "a::b"), 0);
  assert.deepEqual(terminal.outLines, ["null"]);
});

Deno.test("--json is compact, and --raw prints a text without quotes", async () => {
  const terminal = new FakeTerminal({
    functions: { "a::text": () => "hello\nyou", "a::object": () => ({ c: [1, 2] }) },
  });

  await terminal.run("trigger", "a::object", "--json");
  await terminal.run("trigger", "a::object", "--raw");
  await terminal.run("trigger", "a::text", "--json");
  await terminal.run("trigger", "a::text", "--raw");

  assert.deepEqual(terminal.outLines, [
    '{"c":[1,2]}',
    '{"c":[1,2]}',
    '"hello\\nyou"',
    "hello",
    "you",
  ]);
});

Deno.test("address, token and timeout are passed on", async () => {
  const terminal = new FakeTerminal({ functions: { "a::b": () => 1 } });

  await terminal.run(
    ...["trigger", "a::b", "--timeout-ms", "50", "--url", "ws://127.0.0.1:1", "--token", "x"],
  );

  assert.equal(terminal.calls[0]!.timeout_ms, 50);
  assert.equal(terminal.addresses[0]!.url, "ws://127.0.0.1:1");
  assert.equal(terminal.addresses[0]!.token, "x");
});

Deno.test("a call that fails ends with 1, and says so on standard error only", async () => {
  const terminal = new FakeTerminal({
    functions: {
      "a::b": () => {
        throw new InvocationError({ code: "out_of_stock", message: "Only 2 left" }, "a::b");
      },
    },
  });

  assert.equal(await terminal.run("trigger", "a::b"), 1);
  assert.deepEqual(terminal.errLines, ["error: out_of_stock: Only 2 left"]);
  assert.deepEqual(terminal.outLines, []);
  assert.equal(terminal.openConnections, 0);
});

Deno.test("a handler that failed is shown with its stack trace, as lines without control characters", async () => {
  const stacktrace =
    'Traceback (most recent call last):\n  File "main.py", line 3\n\u001b[2JValueError: no\n';
  const terminal = new FakeTerminal({
    functions: {
      "py::f": () => {
        throw new InvocationError(
          { code: "invocation_failed", message: "no", stacktrace },
          "py::f",
        );
      },
    },
  });

  assert.equal(await terminal.run("trigger", "py::f"), 1);
  assert.deepEqual(terminal.errLines, [
    "error: invocation_failed: no",
    "  Stack trace of py::f:",
    "    Traceback (most recent call last):",
    '      File "main.py", line 3',
    "    ValueError: no",
  ]);
});

Deno.test("of a long stack trace both ends are shown", async () => {
  const lines = Array.from({ length: 100 }, (_, i) => `line ${i}`);
  const stacktrace = lines.join("\n");
  const terminal = new FakeTerminal({
    functions: {
      "py::f": () => {
        throw new InvocationError(
          { code: "invocation_failed", message: "no", stacktrace },
          "py::f",
        );
      },
    },
  });

  await terminal.run("trigger", "py::f");
  const shown = terminal.errLines.slice(2).map((line) => line.trim());
  assert.deepEqual(shown, [...lines.slice(0, 15), "… 60 lines …", ...lines.slice(75)]);
});

Deno.test("an unknown function is named", async () => {
  const terminal = new FakeTerminal();

  assert.equal(await terminal.run("trigger", "math::add", "a=2"), 1);
  assert.equal(terminal.errLines[0], "error: function_not_found: Function math::add not found");
});

Deno.test("an engine that is not there ends with 1", async () => {
  const terminal = new FakeTerminal({ unreachable: new CommandError("The engine is not running") });

  assert.equal(await terminal.run("trigger", "math::add"), 1);
  assert.deepEqual(terminal.errLines, ["error: The engine is not running"]);
});

for (
  const [args, message] of [
    [[], /Missing function id/],
    [["a=1"], /The id of the function comes first: engine trigger FUNCTION a=1/],
    [["a::b", "c"], /Not a field: c/],
    [["a::b", "--payload={"], /--payload is not JSON/],
    [["a::b", "--payload=@none"], /none cannot be read/],
    [["a::b", "--timeout-ms=0"], /--timeout-ms: expected 1 to 604800000, received "0"/],
    [["a::b", "--timeout-ms=soon"], /--timeout-ms: expected 1 to/],
  ] as const
) {
  Deno.test(`engine trigger ${args.join(" ")} is not understood`, async () => {
    const terminal = new FakeTerminal({ functions: { "a::b": () => 1 } });

    assert.equal(await terminal.run("trigger", ...args), 2);
    assert.match(terminal.errText, message);
    assert.deepEqual(terminal.addresses, []);
  });
}

Deno.test("--help with a function id shows the help of the function", async () => {
  const terminal = new FakeTerminal({
    functions: {
      "engine::functions::info": ({ function_id }) => ({
        function_id: function_id!,
        worker_name: "math-worker",
        description: "Adds two numbers",
        request_schema: { type: "object", properties: { a: { type: "number", default: 0 } } },
      }),
    },
  });

  assert.equal(await terminal.run("trigger", "math::add", "--help"), 0);
  assert.equal(await terminal.run("trigger", "--function-id=math::add", "-h"), 0);

  assert.deepEqual(terminal.outLines.slice(0, 2), ["math::add", "  Adds two numbers"]);
  assert.ok(terminal.outLines.includes("  a  number  optional  (default 0)"));
});

Deno.test("--help with the id of an unknown function is an error", async () => {
  const terminal = new FakeTerminal({
    functions: {
      "engine::functions::info": () => {
        throw new InvocationError({ code: "NOT_FOUND", message: "x" }, "engine::functions::info");
      },
    },
  });

  assert.equal(await terminal.run("trigger", "math::add", "--help"), 1);
  assert.match(terminal.errText, /^error: Function math::add not found, so its parameters/);
});

Deno.test("a call that was cut off names the size of a large payload, which may be the reason", async () => {
  const functions = {
    "a::b": () => {
      throw new InvocationError({ code: "invocation_stopped", message: "Invocation stopped" }, "a");
    },
  };
  const large = `text=${"x".repeat(2_000_000)}`;
  const terminal = new FakeTerminal({ functions });

  assert.equal(await terminal.run("trigger", "a::b", large), 1);
  assert.match(terminal.errText, /a::b was cut off: .* of 2000011 bytes .*max_message_bytes/);

  const other = new FakeTerminal({ functions });
  assert.equal(await other.run("trigger", "a::b"), 1);
  assert.match(
    other.errText,
    /^error: invocation_stopped: Invocation stopped\n {2}Its worker ended/,
  );
});

Deno.test("a call whose connection was lost does not blame its worker, and names a large payload", async () => {
  const functions = {
    "a::b": () => {
      throw new ConnectionLost("a::b");
    },
  };
  const terminal = new FakeTerminal({ functions });
  assert.equal(await terminal.run("trigger", "a::b"), 1);
  assert.match(
    terminal.errText,
    /^error: The connection to the engine was lost while a::b ran.*doctor$/,
  );

  const large = new FakeTerminal({ functions });
  assert.equal(await large.run("trigger", "a::b", `text=${"x".repeat(2_000_000)}`), 1);
  assert.match(large.errText, /a::b was cut off: .*or the engine ended.*max_message_bytes/);
});

Deno.test("a failed call prints how to look it up by its id", async () => {
  const terminal = new FakeTerminal({
    functions: {
      "a::b": () => {
        throw new InvocationError({ code: "out_of_stock", message: "Only 2 left" }, "a::b", "i-7");
      },
    },
  });

  assert.equal(await terminal.run("trigger", "a::b"), 1);

  assert.deepEqual(terminal.errLines, [
    "error: out_of_stock: Only 2 left",
    "why: engine why i-7",
  ]);
  assert.deepEqual(terminal.outLines, []);
});

Deno.test("--verbose prints it for a successful call too, and the call is always recorded", async () => {
  const traces: (string | undefined)[] = [];
  const terminal = new FakeTerminal({
    functions: {
      "a::b": (_payload, { traceparent }) => {
        traces.push(traceparent);
        return 1;
      },
    },
  });

  assert.equal(await terminal.run("trigger", "a::b", "--verbose"), 0);
  assert.equal(await terminal.run("trigger", "a::b"), 0);

  const [first, second] = traces.map((traceparent) =>
    /^00-([0-9a-f]{32})-[0-9a-f]{16}-01$/.exec(traceparent ?? "")?.[1]
  );
  assert.ok(first !== undefined && second !== undefined && first !== second);
  assert.deepEqual(terminal.errLines, [`why: engine why ${first}`]);
  assert.deepEqual(terminal.outLines, ["1", "1"]);
});

Deno.test("a call that may take long gets a connection with pings, others a short one", async () => {
  const terminal = new FakeTerminal({ functions: { "a::b": () => 1 } });

  await terminal.run("trigger", "a::b");
  await terminal.run("trigger", "a::b", "--timeout-ms", "3600000");

  assert.deepEqual(terminal.addresses.map(({ isShort }) => isShort), [true, false]);
});

Deno.test("--enqueue makes the call a job, with its delay", async () => {
  const terminal = new FakeTerminal({
    functions: { "mail::send": () => ({ messageReceiptId: "r" }) },
  });

  assert.equal(
    await terminal.run("trigger", "mail::send", "to=a", "--enqueue", "q", "--delay-ms", "5"),
    0,
  );
  assert.equal(await terminal.run("trigger", "mail::send", "--delay-ms", "5"), 2);
  assert.equal(
    await terminal.run("trigger", "mail::send", "--enqueue", "q", "--delay-ms", "-5"),
    2,
  );

  assert.deepEqual(terminal.calls.map(({ payload }) => payload), [{ to: "a" }]);
  assert.match(terminal.errLines[0]!, /--delay-ms belongs to a job: add --enqueue QUEUE/);
});
