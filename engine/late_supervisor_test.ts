import assert from "node:assert/strict";
import { LateSupervisor } from "./late_supervisor.ts";
import type { DirectoryEntry } from "./ports/config.ts";
import type { SupervisionOptions, SupervisionParts } from "./supervision.ts";

const MATH: DirectoryEntry = { kind: "directory", name: "math", path: "/math", env: {} };

/** One whose supervisor says what it was asked. */
function setup() {
  const said: string[] = [];
  const supervisor = new Proxy({}, {
    get: (_, method) =>
      method === "then" ? undefined : (...args: unknown[]) => {
        said.push(`${String(method)} ${JSON.stringify(args[0]) ?? ""}`.trim());
        return method === "list" ? ["math"] : undefined;
      },
  });
  const late = new LateSupervisor({} as SupervisionOptions, () => {
    said.push("loaded");
    const parts = { supervisor, checkNewWorker: () => Promise.resolve({ name: "math" }) };
    return Promise.resolve({ createSupervision: () => parts as unknown as SupervisionParts });
  });
  return { late, said };
}

Deno.test("LateSupervisor loads nothing for an engine without directories", async () => {
  const { late, said } = setup();

  await late.apply([]);
  late.onEvent({ type: "worker_connected", worker_id: "w" } as never);

  assert.deepEqual(await late.list(), []);
  await late.close();
  assert.deepEqual(said, []);
});

Deno.test("LateSupervisor loads once, with the first worker, and hands everything on", async () => {
  const { late, said } = setup();

  await Promise.all([late.apply([MATH]), late.checkNewWorker({ path: "/math" })]);
  assert.deepEqual(await late.list(), ["math"]);
  await late.status("math");
  late.onEvent({ type: "config_changed" });
  await late.apply([]);
  await late.close();

  const names = said.map((line) => line.split(" ")[0]);
  assert.deepEqual(names, ["loaded", "apply", "list", "status", "onEvent", "apply", "close"]);
});

Deno.test("LateSupervisor tells whoever asked that it could not be loaded", async () => {
  const load = () => Promise.reject(new TypeError("no such file"));
  const late = new LateSupervisor({} as SupervisionOptions, load);

  await assert.rejects(late.apply([MATH]), { message: "no such file" });
  await assert.rejects(late.status("math"), { message: "no such file" });
});
