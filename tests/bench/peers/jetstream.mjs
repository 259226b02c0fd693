/**
 * Jobs in work queues of JetStream, stored in files: `NATS_PORT`.
 *
 * @module
 */
import process from "node:process";
import { Arrivals, followOperations } from "./requester.mjs";

const SECOND_NS = 1e9;

const port = process.argv[2];
const { connect } = await import("@nats-io/transport-node");
const { AckPolicy, jetstream, jetstreamManager, RetentionPolicy, StorageType } = await import(
  "@nats-io/jetstream"
);
const connection = await connect({ servers: `127.0.0.1:${port}` });
const manager = await jetstreamManager(connection);
const stream = jetstream(connection);
for (const name of ["waiting", "done"]) {
  const retention = RetentionPolicy.Workqueue;
  await manager.streams.add({ name, subjects: [name], retention, storage: StorageType.File });
}
await manager.consumers.add("done", {
  durable_name: "worker",
  ack_policy: AckPolicy.Explicit,
  ack_wait: 30 * SECOND_NS,
  max_ack_pending: 10_000,
});
const handled = new Arrivals();
const consumer = await stream.consumers.get("done", "worker");
await consumer.consume({
  max_messages: 1_000,
  callback: (message) => {
    handled.arrived(message.json().number);
    message.ack();
  },
});
await followOperations({
  enqueue: (number, text) => stream.publish("waiting", JSON.stringify({ number, text })),
  done: async (number, text) => {
    const over = handled.wait(number);
    await stream.publish("done", JSON.stringify({ number, text }));
    await over;
  },
});
