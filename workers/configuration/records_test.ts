import assert from "node:assert/strict";
import type { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type { Store } from "../../engine/ports/store.ts";
import { MemoryStore } from "../../engine/store/memory_store.ts";
import { type ConfigurationRecord, ConfigurationRecords } from "./records.ts";

const RECORD: ConfigurationRecord = {
  id: "a",
  name: "A",
  description: null,
  schema: true,
  metadata: null,
  value: undefined,
  version: 0,
  updated_at_ms: 1,
  changes: [],
};

Deno.test("a record is read as it was written, also without a value", async () => {
  const records = new ConfigurationRecords(new MemoryStore());

  const written = await records.write("a", (old) => {
    assert.equal(old, undefined);
    return RECORD;
  });

  assert.deepEqual([written, await records.get("a")], [RECORD, RECORD]);
  await records.write("a", (old) => ({ ...old!, value: null, version: 1 }));
  assert.deepEqual((await records.page()).records, [{ ...RECORD, value: null, version: 1 }]);
  assert.equal(await records.get("b"), undefined);
});

Deno.test("a change that throws changes nothing, and what it threw arrives", async () => {
  const records = new ConfigurationRecords(new MemoryStore());
  await records.write("a", () => RECORD);
  const refuse = () => {
    throw new TypeError("no");
  };

  await assert.rejects(records.write("a", refuse), TypeError);
  await assert.rejects(records.write("b", refuse), TypeError);

  assert.deepEqual((await records.page()).records, [RECORD]);
});

Deno.test("failures of the store are ADAPTER_ERRORs", async () => {
  const broken = { get: () => Promise.reject(new Error("disk")) } as unknown as Store;

  await assert.rejects(new ConfigurationRecords(broken).get("a"), (error: EngineError) => {
    assert.deepEqual([error.code, /disk/.test(error.message)], ["ADAPTER_ERROR", true]);
    return true;
  });
});
