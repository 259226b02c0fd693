/**
 * A worker as a process of its own, so that it can be killed and frozen: `PORT FUNCTION DELAY_MS`.
 * It answers each call after up to so many milliseconds, with its process id, and prints `ready`.
 *
 * @module
 */
import { Peer } from "./peer.ts";

const [port, functionId, delay] = Deno.args;
const peer = await Peer.connect(Number(port));
peer.onText = (text) => {
  if (!text.startsWith('{"type":"invokefunction"')) return;
  const id = /"invocation_id":"([^"]*)"/.exec(text)![1];
  const ids = `"invocation_id":"${id}","function_id":"${functionId}"`;
  const answer = `{"type":"invocationresult",${ids},"result":${Deno.pid}}`;
  const ms = Math.random() * Number(delay);
  if (ms < 1) void peer.send(answer);
  else setTimeout(() => void peer.send(answer), ms);
};
await peer.announce(`callee-${Deno.pid}`);
await peer.send({ type: "registerfunction", id: functionId! });
await peer.settled(60_000);
console.log("ready");
await peer.ended;
Deno.exit(0); // Answers that are still due have no connection to go to.
