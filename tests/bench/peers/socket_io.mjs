/**
 * Socket.IO with acknowledgements, through a server that passes a request on to the client that
 * offers the function: `broker`, or `requester|responder PORT`. WebSockets only.
 *
 * @module
 */
import process from "node:process";
import { followOrders } from "./requester.mjs";

const OPTIONS = { transports: ["websocket"] };

const [role, port] = process.argv.slice(2);
if (role === "broker") await serve();
else await connect();

async function serve() {
  const { createServer } = await import("node:http");
  const { Server } = await import("socket.io");
  const http = createServer();
  const server = new Server(http, OPTIONS);
  let responder;
  server.on("connection", (socket) => {
    socket.on("offer", () => responder = socket);
    socket.on("echo", (payload, answer) => responder.emit("echo", payload, answer));
  });
  http.listen(0, "127.0.0.1", () => console.log(`listening on ${http.address().port}`));
}

async function connect() {
  const { io } = await import("socket.io-client");
  const socket = io(`http://127.0.0.1:${port}`, OPTIONS);
  await new Promise((resolve) => socket.on("connect", resolve));
  if (role === "requester") await followOrders((payload) => socket.emitWithAck("echo", payload));
  socket.on("echo", (payload, answer) => answer(payload));
  socket.emit("offer");
  console.log("ready");
}
