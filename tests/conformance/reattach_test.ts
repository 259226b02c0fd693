/**
 * PROTOCOL 1.6, 1.9 and 1.11 from the other end of the wire: how connections end and come back.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import { proveOnWire } from "../fakes/wire_engine.ts";

interface WorkerList {
  readonly workers: readonly { id: string }[];
}

proveOnWire("reattach and close", {
  "`reattach` closes the old connection and removes all it held before the next frame": async (
    { open },
  ) => {
    const [old, caller, client] = [await open(), await open(), await open()];
    await old.offer("ghost::f");
    await caller.send(callOf("1", "ghost::f"));
    const running = await old.receive();
    await old.send(callOf("waits", "ghost::f"));
    assert.equal((await old.receive()).type, "invokefunction");

    const again = [...Array(4).keys()].map((n) => callOf(`again ${n}`, "ghost::f"));
    await client.send(
      reattachTo(old.hello),
      { type: "registerfunction", id: "ghost::f" },
      ...again,
    );

    for (const _ of again) assert.equal((await client.receive()).type, "invokefunction");
    await client.receivesNothing();
    const details = { reason: "the worker reattached on another connection" };
    const stopped = { code: "invocation_stopped", message: "Invocation stopped", details };
    assert.deepEqual((await caller.receive()).error, stopped);
    assert.equal((await old.closeFrame()).code, 1000);
    await client.answer(running, { result: "late" });
    await caller.receivesNothing();
    await client.receivesNothing();
  },

  "the connection that came back has an id of its own": async ({ open }) => {
    const [old, client] = [await open(), await open()];
    await client.send(reattachTo(old.hello));
    await client.announce("came-back");

    const { workers } = await client.value<WorkerList>("engine::workers::list", {
      search: "came-b",
    });

    assert.deepEqual(workers.map(({ id }) => id), [client.id]);
    assert.notEqual(client.id, old.id);
  },

  "a `reattach` with an unknown id, its own id, a wrong token or nothing is ignored": async (
    { open },
  ) => {
    const other = await open();
    const reattach_token = other.hello.reattach_token!;
    const previous_worker_id = other.id;
    const broken = [
      { previous_worker_id: crypto.randomUUID(), reattach_token },
      { previous_worker_id, reattach_token: crypto.randomUUID() },
      { previous_worker_id, reattach_token: "" },
      { previous_worker_id },
      { previous_worker_id: 5, reattach_token: null },
    ];

    for (const fields of broken) {
      const client = await open();
      await client.send({ type: "reattach", ...fields });
      await client.receivesNothing();
    }
    const itself = await open();
    await itself.send(reattachTo(itself.hello));

    await itself.receivesNothing();
    await other.receivesNothing();
  },

  "only the first frame can be a `reattach`": async ({ open }) => {
    const [old, client] = [await open(), await open()];

    await client.send({ type: "ping" }, reattachTo(old.hello));

    assert.deepEqual(await client.receive(), { type: "pong" });
    await client.receivesNothing();
    await old.receivesNothing();
  },

  "a worker that leaves without unregistering anything is removed with all it registered": async (
    { open },
  ) => {
    const caller = await open();
    for (const leave of ["close", "destroy"] as const) {
      const client = await open();
      await client.offer(`leaving::${leave}`);
      await caller.send(callOf("1", `leaving::${leave}`));
      await client.receive();

      if (leave === "close") await client.raw.close(1000);
      else client.destroy();

      assert.equal(
        (await caller.receive() as { error?: { code: string } }).error?.code,
        "invocation_stopped",
      );
      assert.equal((await caller.failure(`leaving::${leave}`)).code, "function_not_found");
    }
  },

  "an engine that stops ends calls with an error, then connections with 1001": async (wire) => {
    const [worker, caller] = [await wire.open(), await wire.open()];
    await worker.offer("slow::f");
    await caller.send(callOf("1", "slow::f"));
    await worker.receive();

    const stopped = wire.engine.stop({ drain: false });

    const details = { reason: "the engine is stopping" };
    const error = { code: "invocation_stopped", message: "Invocation stopped", details };
    assert.deepEqual((await caller.receive() as { error?: unknown }).error, error);
    assert.equal((await caller.closeFrame()).code, 1001);
    worker.destroy();
    caller.destroy();
    await stopped;
  },
});

proveOnWire("message size", {
  "a message above `max_message_bytes` closes the connection with 1009": async ({ open }) => {
    const [client, other] = [await open(), await open()];
    const call = `{"type":"invokefunction","invocation_id":"1","function_id":"no::one","data":"`;
    const most = `${call}${"x".repeat(1_000_000 - call.length - 2)}"}`;

    await client.send(most);
    const { error } = await client.receive() as { error?: { code: string } };
    assert.deepEqual([most.length, error?.code], [1_000_000, "function_not_found"]);
    await client.send(`${most} `);

    assert.equal((await client.closeFrame()).code, 1009);
    await other.receivesNothing();
  },
}, { engine: ["max_message_bytes: 1000000", "max_inflight_bytes_per_worker: 1000000"] });

function callOf(invocation_id: string, function_id: string): JsonObject {
  return { type: "invokefunction", invocation_id, function_id };
}

function reattachTo({ worker_id, reattach_token }: JsonObject): JsonObject {
  return { type: "reattach", previous_worker_id: worker_id!, reattach_token: reattach_token! };
}
