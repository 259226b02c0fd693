import assert from "node:assert/strict";
import type { JsonObject } from "../../../sdk/typescript/wire/protocol.ts";
import { problemsIn } from "../../../tests/fakes/fake_sockets.ts";
import {
  JSON_MESSAGE_BYTES_MAX,
  MESSAGE_BYTES_DEFAULT,
  MESSAGE_BYTES_LARGEST,
  parseSocketTrigger,
  SOCKET_CALL_SCHEMA,
  SOCKET_TRIGGER_KEYS,
  SOCKET_TRIGGER_SCHEMA,
} from "./config.ts";

Deno.test("parseSocketTrigger() fills in the defaults; null is absent", () => {
  const expected = {
    route: {
      api_path: "/chat/:room",
      http_method: "GET",
      condition_function_id: undefined,
      middleware_function_ids: [],
      enqueue: undefined,
      lenient_body: false,
      raw_body: false,
      auth_token: undefined,
      rate_limit: undefined,
      timeout_ms: undefined,
    },
    connect_function_id: undefined,
    close_function_id: undefined,
    format: "text",
    subprotocols: [],
    allowed_origins: [],
    max_message_bytes: MESSAGE_BYTES_DEFAULT,
    idle_timeout_ms: undefined,
  };

  assert.deepEqual(parseSocketTrigger({ api_path: "/chat/:room" }), expected);
  const nulls = Object.fromEntries(Object.keys(SOCKET_TRIGGER_KEYS).map((key) => [key, null]));
  assert.deepEqual(parseSocketTrigger({ ...nulls, api_path: "/chat/:room" }), expected);
});

Deno.test("parseSocketTrigger() names every problem in one message", () => {
  const problems = problemsIn(() =>
    parseSocketTrigger({
      connect_function_id: 5,
      format: "xml",
      subprotocols: ["ok", "a b", "x".repeat(65), ""],
      allowed_origins: [""],
      max_message_bytes: MESSAGE_BYTES_LARGEST + 1,
      idle_timeout_ms: 999,
      rate_limit: { requests: 0, per_s: 1 },
    })
  );

  for (
    const path of [
      "config.api_path",
      "config.connect_function_id",
      "config.format",
      "config.subprotocols[1]",
      "config.subprotocols[2]",
      "config.subprotocols[3]",
      "config.allowed_origins[0]",
      "config.max_message_bytes",
      "config.idle_timeout_ms",
    ]
  ) assert.ok(problems.some((problem) => problem.startsWith(`${path}:`)), path);
});

Deno.test("No subprotocol can end the header that it stands in", () => {
  for (const name of ["a\r\nx: y", "a\nb", "a\0", "a,b", "a;b", 'a"b', "ä"]) {
    const problems = problemsIn(() => parseSocketTrigger({ api_path: "/", subprotocols: [name] }));
    assert.equal(problems.length, 1, JSON.stringify(name));
  }
});

Deno.test("Messages that are parsed have a lower bound", () => {
  const config = (max_message_bytes: number): JsonObject => ({
    api_path: "/",
    format: "json",
    max_message_bytes,
  });

  assert.equal(parseSocketTrigger(config(JSON_MESSAGE_BYTES_MAX)).format, "json");
  assert.equal(problemsIn(() => parseSocketTrigger(config(JSON_MESSAGE_BYTES_MAX + 1))).length, 1);
});

Deno.test("The schema of the config has every key, and that of the payload every event", () => {
  const { properties } = SOCKET_TRIGGER_SCHEMA as { properties: JsonObject };
  const call = SOCKET_CALL_SCHEMA as { properties: { event: { enum: string[] } } };

  assert.deepEqual(Object.keys(properties).sort(), Object.keys(SOCKET_TRIGGER_KEYS).sort());
  assert.deepEqual(call.properties.event.enum, ["connect", "message", "close"]);
});
