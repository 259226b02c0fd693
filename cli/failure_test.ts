import assert from "node:assert/strict";
import { EngineError, InvocationError, type JsonObject } from "../mod.ts";
import { CommandError, describeFailure, ExitWith, UsageError } from "./failure.ts";

Deno.test("an invalid command line ends with 2, any other failure with 1", () => {
  assert.deepEqual(describeFailure(new UsageError("Which function?")), {
    lines: ["error: Which function?"],
    exitCode: 2,
  });
  assert.deepEqual(describeFailure(new CommandError("It is gone")), {
    lines: ["error: It is gone"],
    exitCode: 1,
  });
  assert.deepEqual(describeFailure("text"), { lines: ["error: text"], exitCode: 1 });
});

Deno.test("a call that failed is shown with its code once, and with advice", () => {
  const error = new InvocationError({
    code: "function_not_found",
    message: "Function math::ad not found",
    details: { similar: ["math::add"] },
  }, "math::ad");

  assert.deepEqual(describeFailure(error), {
    lines: [
      "error: function_not_found: Function math::ad not found",
      "  Did you mean math::add?",
    ],
    exitCode: 1,
  });
});

Deno.test("a function that is known to be away says why, who called it, and what to type", () => {
  const lines = (details: JsonObject) =>
    describeFailure(
      new EngineError("function_not_found", "Function state::get not found", { details }),
    )
      .lines.slice(1);
  const reason = "worker py is down (exit 1), next start in 8 s";

  assert.deepEqual(lines({ reason, worker: "py", caller: "engine-cli" }), [`  ${reason}`]);
  assert.deepEqual(
    lines({
      reason: "engine-state provides it, which is not in config.yaml",
      worker: "engine-state",
      command: "engine worker add engine-state",
      caller: "shop\u001b[2J",
    }),
    [
      "  It was called by worker shop",
      "  engine-state provides it, which is not in config.yaml",
      "  To fix it: engine worker add engine-state",
    ],
  );
});

Deno.test("an unknown function may be one that is still starting", () => {
  const { lines } = describeFailure(
    new EngineError("function_not_found", "Function a::b not found"),
  );

  assert.match(lines[1]!, /may need a moment/);
});

Deno.test("validation errors are listed by path", () => {
  const { lines } = describeFailure(
    new EngineError("invalid_payload", "The payload does not fit", {
      details: { errors: [{ path: "/a", message: "must be number" }, { path: "", message: "x" }] },
    }),
  );

  assert.deepEqual(lines.slice(1, 3), ["  /a: must be number", "  payload: x"]);
});

Deno.test("details of any other code are shown as they are", () => {
  const error = new EngineError("out_of_stock", "Only 2 left", { details: { left: 2 } });

  assert.deepEqual(describeFailure(error).lines, [
    "error: out_of_stock: Only 2 left",
    '  { "left": 2 }',
  ]);
});

Deno.test("a wrong config.yaml ends with 2 and all its problems", () => {
  const problems = [
    "engine.port: expected 1 to 65535, received 0 (line 2)",
    "workers: expected a list",
  ];
  const error = new EngineError("config_invalid", "config.yaml has 2 problems", {
    details: { problems },
  });

  assert.deepEqual(describeFailure(error), {
    lines: [
      "error: config.yaml has 2 problems",
      "  engine.port: expected 1 to 65535, received 0 (line 2)",
      "  workers: expected a list",
    ],
    exitCode: 2,
  });
});

Deno.test("an error of the operating system is shown with its text and without a code", () => {
  const error = Object.assign(new Error("Permission denied"), { code: "EACCES" });

  assert.deepEqual(describeFailure(error).lines, ["error: EACCES: Permission denied"]);
});

Deno.test("a wrong manifest is shown problem by problem, each of them once", () => {
  const problems = ["name: expected a name (line 1)", "watch: expected a list (line 2)"];
  const message = `/w/engine.worker.yaml cannot be used: ${problems[0]} (and 1 more)`;
  const details = { problems };
  const error = new InvocationError({ code: "manifest_invalid", message, details }, "a::b");

  assert.deepEqual(describeFailure(error), {
    lines: [`error: ${message}`, `  ${problems[1]}`],
    exitCode: 1,
  });
});

Deno.test("details that the message names already are not shown again", () => {
  const error = new EngineError("address_in_use", "Port 5 is taken", { details: { port: 5 } });

  assert.deepEqual(describeFailure(error).lines, ["error: address_in_use: Port 5 is taken"]);
});

Deno.test("a command may end with an exit code of its own and without a message", () => {
  const { lines, exitCode } = describeFailure(new ExitWith(77));

  assert.deepEqual([lines, exitCode], [[], 77]);
  assert.deepEqual(describeFailure(new ExitWith(130, ["interrupted"])).lines, ["interrupted"]);
});
