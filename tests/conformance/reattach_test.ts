/**
 * PROTOCOL 1.6, 1.9 and 1.11 from the other end of the wire: how lines end and come back.
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
  "`reattach` ends the old line and all it held before the next frame": async ({ open }) => {
    const [old, caller, line] = [await open(), await open(), await open()];
    await old.offer("ghost::f");
    await caller.send(callOf("1", "ghost::f"));
    const running = await old.receive();
    await old.send(callOf("waits", "ghost::f"));
    assert.equal((await old.receive()).type, "invokefunction");

    const again = [...Array(4).keys()].map((n) => callOf(`again ${n}`, "ghost::f"));
    await line.send(
      reattachTo(old.hello),
      { type: "registerfunction", id: "ghost::f" },
      ...again,
    );

    for (const _ of again) assert.equal((await line.receive()).type, "invokefunction");
    await line.hearsNothing();
    const stopped = { code: "invocation_stopped", message: "Invocation stopped" };
    assert.deepEqual((await caller.receive()).error, stopped);
    assert.equal((await old.goodbye()).code, 1000);
    await line.answer(running, { result: "late" });
    await caller.hearsNothing();
    await line.hearsNothing();
  },

  "the line that came back has an id of its own": async ({ open }) => {
    const [old, line] = [await open(), await open()];
    await line.send(reattachTo(old.hello));
    await line.announce("came-back");

    const { workers } = await line.value<WorkerList>("engine::workers::list", { search: "came-b" });

    assert.deepEqual(workers.map(({ id }) => id), [line.id]);
    assert.notEqual(line.id, old.id);
  },

  "a `reattach` that names nobody, itself, a wrong token or nothing is ignored": async (
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
      const line = await open();
      await line.send({ type: "reattach", ...fields });
      await line.hearsNothing();
    }
    const itself = await open();
    await itself.send(reattachTo(itself.hello));

    await itself.hearsNothing();
    await other.hearsNothing();
  },

  "only the first frame can be a `reattach`": async ({ open }) => {
    const [old, line] = [await open(), await open()];

    await line.send({ type: "ping" }, reattachTo(old.hello));

    assert.deepEqual(await line.receive(), { type: "pong" });
    await line.hearsNothing();
    await old.hearsNothing();
  },

  "a worker leaves without unregistering anything, and all of it goes": async ({ open }) => {
    const caller = await open();
    for (const leave of ["close", "destroy"] as const) {
      const line = await open();
      await line.offer(`leaving::${leave}`);
      await caller.send(callOf("1", `leaving::${leave}`));
      await line.receive();

      if (leave === "close") await line.raw.close(1000);
      else line.destroy();

      assert.equal(
        (await caller.receive() as { error?: { code: string } }).error?.code,
        "invocation_stopped",
      );
      assert.equal((await caller.failure(`leaving::${leave}`)).code, "function_not_found");
    }
  },

  "an engine that goes down says 1001": async ({ open, engine }) => {
    const line = await open();

    const stopped = engine.stop({ drain: false });

    assert.equal((await line.goodbye()).code, 1001);
    line.destroy();
    await stopped;
  },
});

proveOnWire("message size", {
  "a message above `max_message_bytes` ends the line with 1009": async ({ open }) => {
    const [line, other] = [await open(), await open()];
    const most = `{"type":"ping","x":"${"x".repeat(1_000_000 - 22)}"}`;

    await line.send(most);
    assert.deepEqual([most.length, await line.receive()], [1_000_000, { type: "pong" }]);
    await line.send(`${most} `);

    assert.equal((await line.goodbye()).code, 1009);
    await other.hearsNothing();
  },
}, { engine: ["max_message_bytes: 1000000", "max_inflight_bytes_per_worker: 1000000"] });

function callOf(invocation_id: string, function_id: string): JsonObject {
  return { type: "invokefunction", invocation_id, function_id };
}

function reattachTo({ worker_id, reattach_token }: JsonObject): JsonObject {
  return { type: "reattach", previous_worker_id: worker_id!, reattach_token: reattach_token! };
}
