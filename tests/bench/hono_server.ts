/**
 * The ceiling of an HTTP route: hono alone, which parses a JSON body and sends it back.
 *
 * @module
 */
import { Hono } from "hono";

const app = new Hono();
app.post("/bench", async (context) => context.json(await context.req.json()));
const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, app.fetch);
console.log(`listening on ${server.addr.port}`);
