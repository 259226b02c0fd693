/**
 * The raw ceiling of Deno's WebSocket: sends every message back. Prints its port.
 *
 * @module
 */
const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, (request) => {
  const { socket, response } = Deno.upgradeWebSocket(request, { idleTimeout: 0 });
  socket.binaryType = "arraybuffer";
  socket.onmessage = (event) => socket.send(event.data);
  return response;
});
console.log(`listening on ${server.addr.port}`);
