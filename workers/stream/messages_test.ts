import assert from "node:assert/strict";
import { errorMessage, readRequest, topicMessage } from "./messages.ts";

const TEXT = new TextDecoder();

Deno.test("readRequest() reads what is said to join and to leave", () => {
  const data = { subscriptionId: "s1", streamName: "chat", groupId: "room-1" };

  assert.deepEqual(readRequest(JSON.stringify({ type: "join", data: { ...data, id: "m7" } })), {
    type: "join",
    subscription_id: "s1",
    topic: { stream_name: "chat", group_id: "room-1", id: "m7" },
  });
  assert.deepEqual(readRequest(JSON.stringify({ type: "leave", data: { ...data, id: null } })), {
    type: "leave",
    subscription_id: "s1",
    topic: { stream_name: "chat", group_id: "room-1", id: null },
  });
});

Deno.test("topicMessage() and errorMessage() have the members in the order of the protocol", () => {
  const topic = { stream_name: 'a"b', group_id: "g", id: null };

  assert.equal(
    TEXT.decode(topicMessage(topic, 7, '{"type":"sync","data":1}')),
    '{"type":"stream","timestamp":7,"streamName":"a\\"b","groupId":"g","id":null,' +
      '"event":{"type":"sync","data":1}}',
  );
  assert.equal(
    TEXT.decode(errorMessage("s", { code: "overloaded", message: "m" })),
    '{"type":"error","subscriptionId":"s","error":{"code":"overloaded","message":"m"}}',
  );
});
