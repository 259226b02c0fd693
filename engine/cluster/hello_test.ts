import assert from "node:assert/strict";
import { CLUSTER_PROTOCOL, encodeHello, readHello } from "./hello.ts";

const ENGINE = { life: "0123456789abcdef", name: "b", version: "1.0.0", log: "none" };
const bytes = (value: unknown): Uint8Array => new TextEncoder().encode(JSON.stringify(value));

Deno.test("a hello is read as it was written", () => {
  assert.deepEqual(readHello(encodeHello(ENGINE)), { ...ENGINE, protocol: CLUSTER_PROTOCOL });
});

Deno.test("a hello of a later protocol may have more fields", () => {
  const hello = readHello(bytes({ ...ENGINE, protocol: 99, more: { things: true } }));

  assert.deepEqual(hello, { ...ENGINE, protocol: 99 });
  const { log: _, ...older } = ENGINE;
  assert.deepEqual(readHello(bytes({ ...older, protocol: 1, log: 7 })), { ...older, protocol: 1 });
});

Deno.test("what is no hello is none", () => {
  const cases = [
    { ...ENGINE },
    { ...ENGINE, protocol: "1" },
    { ...ENGINE, protocol: 1, life: "0123456789ABCDEF" },
    { ...ENGINE, protocol: 1, life: "0.3456789abcdef.." },
    { ...ENGINE, protocol: 1, name: "" },
    { ...ENGINE, protocol: 1, name: 7 },
    { ...ENGINE, protocol: 1, version: "x".repeat(2_000) },
    { ...ENGINE, protocol: 1, more: "x".repeat(9_000) },
    [],
    null,
    "hello",
  ];
  for (const value of cases) assert.equal(readHello(bytes(value)), undefined);
  assert.equal(readHello(new Uint8Array([0xff, 0])), undefined);
});
