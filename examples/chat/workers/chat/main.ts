// A chat with rooms: who comes in gets the last messages, then each one that is said.
import { EngineError, registerWorker } from "engine-sdk";
import page from "./page.html" with { type: "text" };

const KEPT = 50;
const TEXT_CHARS_MAX = 2_000;

interface Message {
  from: string;
  text: string;
}

interface Connect {
  path_params: { room: string };
  query_params: { name?: string };
}

interface Said {
  path_params: { room: string };
  context: { name: string };
  data: string;
}

const worker = registerWorker();

worker.registerFunction("chat::connect", async ({ path_params, query_params }: Connect) => {
  const { room } = path_params;
  const { name } = query_params;
  if (!name) {
    throw new EngineError("no_name", "Give a name", { details: { status_code: 401 } });
  }
  const payload = { scope: "rooms", key: room };
  const messages = await worker.trigger<object, Message[] | undefined>({
    function_id: "state::get",
    payload,
  });
  return { groups: [room], context: { name }, data: messages ?? [] };
}, { description: "Lets a client into a room" });

worker.registerFunction("chat::message", async ({ path_params, context, data }: Said) => {
  const message = { from: context.name, text: data.slice(0, TEXT_CHARS_MAX) };
  await remember(path_params.room, message);
  const payload = { group: path_params.room, data: [message] };
  await worker.trigger({ function_id: "websocket::send", payload });
}, { description: "Passes a message on to all in the room" });

/** Adds a message to the last ones; two at the same time both get their place. */
async function remember(room: string, message: Message): Promise<void> {
  const place = { scope: "rooms", key: room };
  for (;;) {
    const entry = await worker.trigger<object, { value: Message[]; version: number } | undefined>({
      function_id: "state::entry",
      payload: place,
    });
    const value = [...entry?.value ?? [], message].slice(-KEPT);
    const payload = { ...place, value, expected_version: entry?.version ?? 0 };
    try {
      await worker.trigger({ function_id: "state::set", payload });
      return;
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
  config: { api_path: "/rooms/:room", connect_function_id: "chat::connect" },
});
