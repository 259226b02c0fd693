/**
 * Request and reply over a NATS server, with its client for Node: `requester|responder PORT`.
 *
 * @module
 */
import process from "node:process";
import { followOrders } from "./requester.mjs";

const SUBJECT = "bench.echo";
const TIMEOUT_MS = 20_000;

const [role, port] = process.argv.slice(2);
const { connect } = await import("@nats-io/transport-node");
const connection = await connect({ servers: `127.0.0.1:${port}` });
if (role === "requester") {
  await followOrders(async (payload) => {
    const answer = await connection.request(SUBJECT, JSON.stringify(payload), {
      timeout: TIMEOUT_MS,
    });
    return answer.json();
  });
}
const callback = (_error, request) => request.respond(JSON.stringify(request.json()));
connection.subscribe(SUBJECT, { callback });
await connection.flush();
console.log("ready");
