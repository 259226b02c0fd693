/**
 * What one writes without a framework: a router on `ws` that parses each message, looks up who
 * offers the function and writes it anew, and two clients on `ws`: `broker`, or
 * `requester|responder PORT`. It has no deadlines, no bounds and no clean-up.
 *
 * @module
 */
import process from "node:process";
import { followOrders } from "./requester.mjs";

const FUNCTION_ID = "bench::echo";

const [role, port] = process.argv.slice(2);
const { WebSocket, WebSocketServer } = await import("ws");
if (role === "broker") serve();
else await connect();

function serve() {
  const offers = new Map();
  const callers = new Map();
  let calls = 0;
  const server = new WebSocketServer({ host: "127.0.0.1", port: 0 });
  server.on("connection", (socket) => {
    socket.on("message", (text) => {
      const { id, call, offer, data } = JSON.parse(text);
      if (offer !== undefined) offers.set(offer, socket);
      else if (call !== undefined) {
        callers.set(++calls, { socket, id });
        offers.get(call).send(JSON.stringify({ id: calls, call, data }));
      } else {
        const caller = callers.get(id);
        callers.delete(id);
        caller.socket.send(JSON.stringify({ id: caller.id, data }));
      }
    });
  });
  server.on("listening", () => console.log(`listening on ${server.address().port}`));
}

async function connect() {
  const socket = new WebSocket(`ws://127.0.0.1:${port}`);
  await new Promise((resolve) => socket.once("open", resolve));
  const send = (message) => socket.send(JSON.stringify(message));
  if (role === "requester") await request(socket, send);
  socket.on("message", (text) => {
    const { id, data } = JSON.parse(text);
    send({ id, data });
  });
  send({ offer: FUNCTION_ID });
  console.log("ready");
}

async function request(socket, send) {
  const waiting = new Map();
  let calls = 0;
  socket.on("message", (text) => {
    const { id, data } = JSON.parse(text);
    waiting.get(id)(data);
    waiting.delete(id);
  });
  await followOrders((data) =>
    new Promise((resolve) => {
      waiting.set(++calls, resolve);
      send({ id: calls, call: FUNCTION_ID, data });
    })
  );
}
