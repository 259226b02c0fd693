import assert from "node:assert/strict";
import { parseStreamConfig } from "./config.ts";

Deno.test("the default is a port of this machine", () => {
  const { host, port, connections_max, auth_function } = parseStreamConfig(undefined);

  assert.deepEqual([host, port, connections_max, auth_function], [
    "127.0.0.1",
    3112,
    10_000,
    undefined,
  ]);
});

Deno.test("an address that others can reach needs an auth function, or to be meant", () => {
  assert.throws(() => parseStreamConfig({ host: "0.0.0.0" }), /host.*auth_function/);
  parseStreamConfig({ host: "0.0.0.0", auth_function: "auth::stream" });
  parseStreamConfig({ host: "0.0.0.0", insecure: true });
});

Deno.test("every problem is named", () => {
  const wrong = { port: 70_000, connections_max: -1, call_timeout_ms: 0, color: "red" };

  assert.throws(
    () => parseStreamConfig(wrong),
    /port[^]*connections_max[^]*call_timeout_ms[^]*color|call_timeout_ms[^]*connections_max/,
  );
});
