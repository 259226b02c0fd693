import assert from "node:assert/strict";
import { until } from "../../tests/launcher_contract.ts";
import { endStrays, straysOf } from "./strays.ts";

const isLinux = Deno.build.os === "linux";

/** A program of a launch that has a session of its own, as if somebody had sent it away. */
function stray(launchId: string, script = "exec sleep 1000") {
  const child = new Deno.Command("sh", {
    args: ["-c", script],
    detached: true,
    env: { ENGINE_LAUNCH_ID: launchId },
  }).spawn();
  const end = async (): Promise<void> => {
    try {
      child.kill("SIGKILL");
    } catch {
      // It has ended already.
    }
    await child.status;
  };
  return { pid: child.pid, status: child.status, [Symbol.asyncDispose]: end };
}

/** Whether a program has come so far as to ignore what asks it to leave. */
async function ignoresTerm(pid: number): Promise<boolean> {
  const status = await Deno.readTextFile(`/proc/${pid}/status`);
  const ignored = BigInt(`0x${/^SigIgn:\s*(\w+)$/m.exec(status)![1]}`);
  return (ignored & (1n << 14n)) !== 0n;
}

Deno.test({
  name: "straysOf() finds what has the launch in its environment, and what that started",
  ignore: !isLinux,
  fn: async () => {
    const id = crypto.randomUUID();
    await using other = stray(crypto.randomUUID());
    await using one = stray(id, "setsid sleep 1000 & wait");

    await until(async () => (await straysOf(id)).length === 2);

    const found = await straysOf(id);
    assert.ok(found.includes(one.pid));
    assert.ok(!found.includes(other.pid));
    await endStrays(id, 5_000);
    assert.deepEqual(await straysOf(id), []);
  },
});

Deno.test({
  name: "endStrays() asks first, and ends those that stay",
  ignore: !isLinux,
  fn: async () => {
    const id = crypto.randomUUID();
    await using polite = stray(id);
    await using stubborn = stray(id, "trap '' TERM; while :; do sleep 0.1; done");
    await until(async () => (await straysOf(id)).length >= 2);
    await until(() => ignoresTerm(stubborn.pid));

    await endStrays(id, 300);

    assert.equal((await stubborn.status).signal, "SIGKILL");
    assert.equal((await polite.status).success, false);
    assert.deepEqual(await straysOf(id), []);
  },
});

for (const id of [null, "", "launch-1", crypto.randomUUID().slice(1)]) {
  Deno.test(`an id such as ${JSON.stringify(id)}, which others may have, finds nobody`, async () => {
    await using one = stray(id ?? "");

    assert.deepEqual(await straysOf(id), []);
    await endStrays(id, 5_000);

    assert.doesNotThrow(() => Deno.kill(one.pid, 0));
  });
}
