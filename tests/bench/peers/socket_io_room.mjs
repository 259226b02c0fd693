/**
 * A room of Socket.IO: `broker`, or `client PORT SUBSCRIBERS`, which publishes and follows.
 * WebSockets only.
 *
 * @module
 */
import process from "node:process";
import { Arrivals, followOperations } from "./requester.mjs";

const OPTIONS = { transports: ["websocket"], forceNew: true };
const ROOM = "room";

const [role, port, subscribers] = process.argv.slice(2);
if (role === "broker") await serve();
else await connect();

async function serve() {
  const { createServer } = await import("node:http");
  const { Server } = await import("socket.io");
  const http = createServer();
  const server = new Server(http, { transports: OPTIONS.transports });
  server.on("connection", (socket) => {
    socket.on("join", (answer) => (socket.join(ROOM), answer()));
    socket.on("publish", (data, answer) => (server.to(ROOM).emit("message", data), answer()));
  });
  http.listen(0, "127.0.0.1", () => console.log(`listening on ${http.address().port}`));
}

async function connect() {
  const { io } = await import("socket.io-client");
  const delivered = new Arrivals();
  const url = `http://127.0.0.1:${port}`;
  await Promise.all(Array.from({ length: Number(subscribers) }, async () => {
    const socket = io(url, OPTIONS);
    socket.on("message", ({ number }) => delivered.arrived(number));
    await socket.emitWithAck("join");
  }));
  const publisher = io(url, OPTIONS);
  await followOperations({
    publish: async (number, text) => {
      const all = delivered.wait(number, Number(subscribers));
      await publisher.emitWithAck("publish", { number, text });
      await all;
    },
  });
}
