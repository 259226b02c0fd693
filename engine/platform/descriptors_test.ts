import assert from "node:assert/strict";
import {
  descriptorLimit,
  descriptorReserve,
  DESCRIPTORS_MIN,
  explainExhausted,
  requireDescriptors,
  socketBounds,
} from "./descriptors.ts";

const limits = (soft: string): string =>
  "Limit                     Soft Limit           Hard Limit           Units     \n" +
  "Max processes             100                  100                  processes \n" +
  `Max open files            ${soft.padEnd(20)} 1048576              files     \n`;

Deno.test("descriptorLimit() reads the soft limit of open files", () => {
  assert.equal(descriptorLimit(() => limits("256")), 256);
  assert.equal(descriptorLimit(() => limits("unlimited")), 1_048_576);
  assert.equal(descriptorLimit(() => limits("1000000000")), 1_048_576);
});

Deno.test("descriptorLimit() has a value on a platform that does not tell", () => {
  assert.equal(descriptorLimit(() => "something else"), 10_240);
  const missing = (): string => {
    throw new Deno.errors.NotFound("/proc/self/limits");
  };
  assert.equal(descriptorLimit(missing), 10_240);
});

Deno.test("the ports together leave the reserve free", () => {
  for (const limit of [256, 1_024, 4_096, 20_000, 65_536]) {
    const { workers, http, streams, console } = socketBounds(limit);

    assert.ok(
      workers + http + streams + console <= limit - descriptorReserve(limit),
      String(limit),
    );
    assert.ok(descriptorReserve(limit) >= 96);
  }
  assert.deepEqual(socketBounds(256), { workers: 100, http: 30, streams: 20, console: 10 });
});

Deno.test("a port has some sockets however low the limit, and at most 20,000", () => {
  assert.deepEqual(socketBounds(32), { workers: 8, http: 8, streams: 8, console: 8 });
  assert.deepEqual(socketBounds(1_048_576), {
    workers: 20_000,
    http: 20_000,
    streams: 20_000,
    console: 20_000,
  });
});

Deno.test("requireDescriptors() refuses a limit below the least, and says how to raise it", () => {
  requireDescriptors(DESCRIPTORS_MIN);
  assert.throws(() => requireDescriptors(DESCRIPTORS_MIN - 1), {
    code: "too_few_descriptors",
    message: /^The process may open 63 files and sockets, too few .* needs 64 .*`ulimit -n 4096`/,
    details: { limit: 63 },
  });
});

Deno.test("explainExhausted() says how many are open, and leaves other errors as they are", () => {
  const plain = Object.assign(new Error("EMFILE: open '/x'"), { code: "EMFILE" });
  const platform = new Error("The state file cannot be opened (Too many open files (os error 24))");
  for (const thrown of [plain, platform]) {
    const error = explainExhausted(thrown, 256, 255) as Error & { code: string };
    assert.equal(error.code, "too_few_descriptors");
    assert.match(error.message, /^The process has 255 of 256 files and sockets open, too few/);
    assert.equal(error.cause, thrown);
  }
  for (const other of [new Error("no"), "no", undefined]) {
    assert.equal(explainExhausted(other, 256, 255), other);
  }
});
