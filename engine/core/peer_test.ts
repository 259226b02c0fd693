/**
 * Pausing a peer that does not read its results, and its other properties.
 *
 * @module
 */
import assert from "node:assert/strict";
import { SEND_AHEAD_BYTES } from "../ports/connection.ts";
import { answer, call, calling, handed } from "../../tests/fakes/fake_router.ts";
import { FakeConnection } from "../../tests/fakes/fake_connection.ts";
import { Peer } from "./peer.ts";
import { bytesOf } from "./wire/bytes.ts";

function peer(builtin: string | null = null): Peer {
  const info = { address: null, launch_id: null, builtin };
  const identity = { id: "w1", reattach_token: "t", info, connected_at_ms: 0 };
  return new Peer(new FakeConnection("c"), identity);
}

Deno.test("a caller that does not read its results is paused until it does", () => {
  const { worker, caller } = calling();
  call(caller, "i1");
  call(caller, "i2");
  const [first, second] = handed(worker);

  caller.connection.queuedBytes = SEND_AHEAD_BYTES;
  answer(worker, first!.invocation_id);
  assert.equal(caller.connection.paused, false);
  caller.connection.queuedBytes = SEND_AHEAD_BYTES + 1;
  answer(worker, second!.invocation_id);
  assert.equal(caller.connection.paused, true);

  caller.events.drained();
  assert.equal(caller.connection.paused, false);
});

Deno.test("a worker that does not read its calls is not paused: its results free it", () => {
  const { worker, caller } = calling();
  worker.connection.queuedBytes = 10 * SEND_AHEAD_BYTES;

  call(caller, "i1");

  assert.equal(worker.connection.paused, false);
});

Deno.test("a transport that cannot pause is asked again and never resumed", () => {
  const slow = peer();
  const connection = slow.connection as FakeConnection;
  connection.canPause = false;
  connection.queuedBytes = SEND_AHEAD_BYTES + 1;
  connection.resume = () => assert.fail("nothing was paused");

  slow.reply(bytesOf("{x"), 1, bytesOf("x}x"), 1, 2);
  slow.replyText("[]");
  slow.drained();

  assert.deepEqual(connection.takeTexts(), ["{}", "[]"]);
});

Deno.test("a disconnected peer is sent nothing", () => {
  const gone = peer();
  gone.isLive = false;

  gone.send({ type: "ping" });
  gone.reply(bytesOf("{"), 1, bytesOf("}"), 0, 1);
  gone.replyText("{}");

  assert.deepEqual((gone.connection as FakeConnection).takeTexts(), []);
});

Deno.test("a peer has its built-in name, its announced name, or the group of what it registered", () => {
  const own = peer("engine-state");
  const worker = peer();
  const before = worker.nameFor("math::add");
  worker.announcement = {
    name: "sums",
    runtime: "",
    version: "",
    os: "",
    pid: 0,
    isolation: null,
  };

  assert.deepEqual([own.nameFor("a::b"), before, worker.nameFor("math::add")], [
    "engine-state",
    "math",
    "sums",
  ]);
});
