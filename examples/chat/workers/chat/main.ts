// A chat with rooms: clients join, ask for the last messages, and get each one that is said.
import { EngineError, registerWorker } from "engine-sdk";
import page from "./page.html" with { type: "text" };

const KEPT = 50;
const TEXT_CHARS_MAX = 2_000;

interface Message {
  /** 1 for the first message of its room, then one more each. */
  n: number;
  from: string;
  text: string;
}

interface Connect {
  path_params: { room: string };
  query_params: { name?: string };
}

interface Received {
  connection_id: string;
  path_params: { room: string };
  context: { name: string };
  data: { say: string } | { read: true };
}

const worker = registerWorker();

worker.registerFunction("chat::connect", ({ path_params, query_params }: Connect) => {
  const { name } = query_params;
  if (!name) {
    throw new EngineError("no_name", "Give a name", { details: { status_code: 401 } });
  }
  return { groups: [path_params.room], context: { name } };
}, { description: "Lets a client into a room" });

worker.registerFunction("chat::message", async (received: Received) => {
  const { connection_id, context, data, path_params: { room } } = received;
  // Read after the client has joined: a message said meanwhile comes twice rather than never, and
  // the page shows each number once.
  const payload = "read" in data
    ? { connection_id, data: await lastMessages(room) }
    : { group: room, data: [await remember(room, context.name, data.say)] };
  await worker.trigger({ function_id: "websocket::send", payload });
}, {
  description: "Passes a message on to all in the room, or the last ones to the client that asks",
});

async function lastMessages(room: string): Promise<Message[]> {
  const payload = { scope: "rooms", key: room };
  const messages = await worker.trigger<object, Message[] | undefined>({
    function_id: "state::get",
    payload,
  });
  return messages ?? [];
}

/** Adds a message to the last ones; two at the same time both get their place. */
async function remember(room: string, from: string, text: string): Promise<Message> {
  const place = { scope: "rooms", key: room };
  for (;;) {
    const entry = await worker.trigger<object, { value: Message[]; version: number } | undefined>({
      function_id: "state::entry",
      payload: place,
    });
    const before = entry?.value ?? [];
    const n = (before.at(-1)?.n ?? 0) + 1;
    const message = { n, from, text: text.slice(0, TEXT_CHARS_MAX) };
    const value = [...before, message].slice(-KEPT);
    const payload = { ...place, value, expected_version: entry?.version ?? 0 };
    try {
      await worker.trigger({ function_id: "state::set", payload });
      return message;
    } catch (error) {
      if (!(error instanceof EngineError) || error.code !== "version_mismatch") throw error;
    }
  }
}

worker.registerFunction("chat::page", () => ({
  headers: { "content-type": "text/html; charset=utf-8" },
  body: page,
}), { description: "The page" });

worker.registerTrigger({
  type: "http",
  function_id: "chat::page",
  config: { api_path: "/" },
});
worker.registerTrigger({
  type: "websocket",
  function_id: "chat::message",
  config: { api_path: "/rooms/:room", format: "json", connect_function_id: "chat::connect" },
});
