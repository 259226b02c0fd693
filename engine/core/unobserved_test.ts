/**
 * The observer of a router that nobody observes.
 *
 * @module
 */
import assert from "node:assert/strict";
import { unobserved } from "./unobserved.ts";

Deno.test("a router that nobody observes sends what callers sent, and lists no candidates", () => {
  const subject = unobserved.functionOf("eu", "f");
  const party = unobserved.partyOf("w1", "shop");
  const call = {
    slot: 1,
    uses: 1,
    callerId: new Uint8Array(),
    callerIdBytes: 0,
    timeout_ms: 1,
    since: 0,
    subject,
  };

  assert.deepEqual(subject, { namespace: "eu", function_id: "f" });
  assert.equal(party.worker_id, "w1");
  assert.equal(unobserved.wantsCandidates(call), false);
  assert.equal(unobserved.sent(call, party, 0, undefined), undefined);
});
