/**
 * Moleculer's actions over its TCP transporter, from node to node without a broker process:
 * `requester|responder REQUESTER_PORT RESPONDER_PORT`.
 *
 * @module
 */
import { Server } from "node:net";
import process from "node:process";
import { followOrders } from "./requester.mjs";

const PATIENCE_MS = 20_000;

// It would listen on every address of this machine, and has no option for that.
const { listen } = Server.prototype;
Server.prototype.listen = function (options, done) {
  return listen.call(this, { ...options, host: "127.0.0.1" }, done);
};

const [role, requesterPort, responderPort] = process.argv.slice(2);
const { default: { ServiceBroker } } = await import("moleculer");
const broker = new ServiceBroker({
  nodeID: role,
  logger: false,
  transporter: {
    type: "TCP",
    options: {
      udpDiscovery: false,
      useHostname: false,
      port: Number(role === "requester" ? requesterPort : responderPort),
      urls: [`127.0.0.1:${requesterPort}/requester`, `127.0.0.1:${responderPort}/responder`],
    },
  },
});
if (role === "responder") {
  broker.createService({ name: "bench", actions: { echo: ({ params }) => params } });
}
await broker.start();
if (role === "requester") {
  await broker.waitForServices(["bench"], PATIENCE_MS);
  await followOrders((payload) => broker.call("bench.echo", payload));
}
console.log("ready");
