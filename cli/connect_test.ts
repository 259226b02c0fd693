import assert from "node:assert/strict";
import type { Dial, TransportEvents } from "../mod.ts";
import { connectToEngine } from "./connect.ts";
import { CommandError, describeFailure, EXIT_NOT_UNDERSTOOD, UsageError } from "./failure.ts";

/** A line that reports `closed` at once with this reason; without one it never says anything. */
function refusing(reason?: string): Dial {
  return (_url, events) => {
    if (reason !== undefined) queueMicrotask(() => events.closed(1006, reason));
    return { send: () => {}, close: () => queueMicrotask(() => events.closed(1000, "")) };
  };
}

/** A line on which every call is answered with its own payload. */
const echoing: Dial = (_url, events: TransportEvents) => {
  queueMicrotask(() => events.opened());
  return {
    send(message) {
      const { invocation_id, function_id, data } = JSON.parse(message as string);
      if (invocation_id === undefined) return;
      const result = { type: "invocationresult", invocation_id, function_id, result: data };
      queueMicrotask(() => events.text(JSON.stringify(result)));
    },
    close: () => queueMicrotask(() => events.closed(1000, "")),
  };
};

async function messageOf(promise: Promise<unknown>): Promise<string> {
  const thrown = await promise.then(() => assert.fail("it connected"), (reason) => reason);
  assert.ok(thrown instanceof CommandError, String(thrown));
  return thrown.message;
}

Deno.test("a line to an engine carries calls", async () => {
  await using engine = await connectToEngine({ url: "ws://127.0.0.1:1", dial: echoing });

  assert.deepEqual(await engine.call("a::b", { c: 1 }, 1_000), { c: 1 });
});

Deno.test("an engine that is not there is reported with how to start one", async () => {
  const url = "ws://127.0.0.1:49134";

  const message = await messageOf(connectToEngine({ url, dial: refusing("ECONNREFUSED") }));

  assert.equal(
    message,
    "The engine is not running at ws://127.0.0.1:49134; start it with: engine --config config.yaml",
  );
});

Deno.test("a dead engine is reported through a real socket as well", async () => {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr;
  listener.close();
  const began = performance.now();

  const message = await messageOf(connectToEngine({ url: `ws://127.0.0.1:${port}` }));

  assert.match(message, /^The engine is not running at ws:\/\/127\.0\.0\.1:\d+; start it with:/);
  assert.ok(performance.now() - began < 2_000);
});

Deno.test("a port that takes connections and stays silent is not an engine", async () => {
  const message = await messageOf(
    connectToEngine({ url: "ws://127.0.0.1:1", dial: refusing(), patienceMs: 20 }),
  );

  assert.match(message, /^The engine is not running/);
});

Deno.test("a token that is wrong is reported as such, and not shown", async () => {
  const url = "ws://127.0.0.1:1/?token=secret";

  const message = await messageOf(connectToEngine({ url, dial: refusing("HTTP 401") }));

  assert.match(message, /wants another token; give it with --token or ENGINE_TOKEN/);
  assert.ok(!message.includes("secret"));
});

Deno.test("another refusal is reported with its status", async () => {
  const message = await messageOf(
    connectToEngine({ url: "ws://127.0.0.1:1", dial: refusing("HTTP 403") }),
  );

  assert.match(message, /refused the line with HTTP 403/);
});

for (const url of ["127.0.0.1:49134", "http://127.0.0.1:1", "nonsense", ""]) {
  Deno.test(`the address ${JSON.stringify(url)} is not understood`, async () => {
    const thrown = await connectToEngine({ url }).then(() => undefined, (reason) => reason);

    assert.ok(thrown instanceof UsageError);
    const { lines, exitCode } = describeFailure(thrown);
    assert.equal(exitCode, EXIT_NOT_UNDERSTOOD);
    assert.match(lines.join(), /must look like ws:.*received /);
  });
}
