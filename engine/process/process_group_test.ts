import assert from "node:assert/strict";
import { endGroup, groupEnds, isGroupAlive, signalGroup, startOf } from "./process_group.ts";

function spawn(command: string): Deno.ChildProcess {
  const args = ["-c", command];
  return new Deno.Command("sh", { args, detached: true, stdin: "null", stdout: "null" }).spawn();
}

Deno.test("endGroup() ends the leader and those it started", async () => {
  const child = spawn("sleep 1000 & sleep 1000 & wait");

  await endGroup(child.pid, 5_000);

  await child.status;
  assert.equal(await isGroupAlive(child.pid), false);
});

Deno.test("endGroup() uses force when the time is over", async () => {
  const child = spawn("trap '' TERM; while :; do sleep 0.05; done");
  await new Promise((resolve) => setTimeout(resolve, 200)); // The trap has to be set.

  await endGroup(child.pid, 100);

  assert.equal((await child.status).signal, "SIGKILL");
});

Deno.test("isGroupAlive() counts a group whose leader has left", async () => {
  const child = spawn("sleep 1000 &");
  await child.status;

  assert.equal(await isGroupAlive(child.pid), true);
  assert.equal(await groupEnds(child.pid, 30), false);

  await endGroup(child.pid, 5_000);
  assert.equal(await isGroupAlive(child.pid), false);
});

Deno.test("signalGroup() never reaches the engine's own group or everybody", () => {
  for (const leader of [1, 0, -1]) assert.equal(signalGroup(leader, 0), false);
});

Deno.test("startOf() is equal for one process and there only while it runs", async () => {
  const child = spawn("exec sleep 1000");
  const start = await startOf(child.pid);

  assert.equal(await startOf(child.pid), start);
  assert.notEqual(await startOf(Deno.pid), start);

  await endGroup(child.pid, 5_000);
  await child.status;
  assert.equal(await startOf(child.pid), undefined);
});
