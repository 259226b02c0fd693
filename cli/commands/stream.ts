/**
 * `engine stream`: the items of streams, and what happens to them.
 *
 * What is not there may be spelled wrongly, so errors name the nearest stream or group that is.
 *
 * @module
 */
import type { Command } from "@commander-js/extra-typings";
import { similarNames } from "../../engine/mod.ts";
import type { Json, JsonObject } from "../../mod.ts";
import { readNumber, TOKEN_HELP, URL_HELP } from "../arguments.ts";
import type { EngineConnection } from "../connect.ts";
import { CommandError, UsageError } from "../failure.ts";
import { parseValue, readPayload } from "../payload.ts";
import { compactJson, count, printable, renderJson, renderTable } from "../render.ts";
import type { Terminal } from "../terminal.ts";

const EXAMPLES = `
Examples:
  engine stream list                                the streams; with a name its groups
  engine stream list chat room-1                    the items of a group
  engine stream get chat room-1 m7
  engine stream set chat room-1 m7 text=hi --ttl-ms 60000
  engine stream delete chat room-1 m7
  engine stream send chat room-1 typing '{"by": "ann"}'
  engine stream follow chat room-1`;

/** Characters of an item in a table. */
const ITEM_CHARS = 80;
const LIMIT_MAX = 1_000;
const TTL_MS_MAX = 3_155_760_000_000;
const COUNT_MAX = 1_000_000_000;

/** A stream, as `stream::list_all` describes it. */
interface StreamView {
  readonly id: string;
  readonly groups: readonly string[];
}

/** An item, as `stream::list_items` describes it. */
interface ItemView {
  readonly id: string;
  readonly data: Json;
}

/** What `engine::stream::stats` answers. */
interface StatsView {
  readonly url: string;
  readonly connections: number;
  readonly connections_max: number;
  readonly subscriptions: number;
  readonly events_sent: number;
  readonly closed_slow: number;
  readonly streams: readonly {
    readonly stream_name: string;
    readonly subscriptions: number;
    readonly events: number;
  }[];
}

/** An event, as a trigger of type `stream` fires it. */
interface EventView {
  readonly timestamp: number;
  readonly groupId: string;
  readonly id: string | null;
  readonly event:
    | { readonly type: "create" | "update" | "delete"; readonly data: Json }
    | { readonly type: "event"; readonly event: { readonly type: string; readonly data: Json } };
}

/** Where something is; the parts that were given. */
interface Place {
  readonly stream: string;
  readonly group?: string | undefined;
  readonly item?: string | undefined;
}

/** Adds `engine stream`. */
export function addStream(program: Command, terminal: Terminal): void {
  const stream = program.command("stream")
    .description("List, read, write and follow items and events of streams")
    .addHelpText("after", EXAMPLES);
  addList(stream, terminal);
  addGet(stream, terminal);
  addSet(stream, terminal);
  addDelete(stream, terminal);
  addSend(stream, terminal);
  addFollow(stream, terminal);
  addStats(stream, terminal);
}

function addList(stream: Command, terminal: Terminal): void {
  stream.command("list")
    .description("List the streams, the groups of a stream, or the items of a group")
    .argument("[stream]", "name of the stream")
    .argument("[group]", "id of a group of the stream")
    .option("--limit <n>", "maximum number of items (default: 100)")
    .option("--json", "print JSON on one line, for programs")
    .option("--url <url>", URL_HELP)
    .option("--token <token>", TOKEN_HELP)
    .addHelpText("after", EXAMPLES)
    .action(async (name, group, flags) => {
      const limit = readNumber("--limit", flags.limit ?? "100", 1, LIMIT_MAX);
      await using engine = await terminal.connect({ ...flags, isShort: true });
      const { all, head, rows } = await listing(engine, name, group, limit, terminal);
      if (flags.json) return terminal.out(compactJson(all));
      if (rows.length === 0 && name !== undefined) {
        return terminal.err(await missing(engine, { stream: name, group }));
      }
      for (const line of renderTable(head, rows)) terminal.out(line);
    });
}

function addGet(stream: Command, terminal: Terminal): void {
  stream.command("get")
    .description("Print an item")
    .argument("<stream>", "name of the stream")
    .argument("<group>", "id of the group")
    .argument("<item>", "id of the item")
    .option("--json", "print JSON on one line, for programs")
    .option("--url <url>", URL_HELP)
    .option("--token <token>", TOKEN_HELP)
    .addHelpText("after", EXAMPLES)
    .action(async (name, group, item, flags) => {
      await using engine = await terminal.connect({ ...flags, isShort: true });
      const place = { stream: name, group, item };
      const found = await ask(engine, "get", place);
      if (found === undefined) throw new CommandError(await missing(engine, place));
      terminal.out(flags.json ? compactJson(found) : renderJson(found));
    });
}

function addSet(stream: Command, terminal: Terminal): void {
  stream.command("set")
    .description("Store an item, replacing the one with that id; subscribers receive it")
    .argument("<stream>", "name of the stream")
    .argument("<group>", "id of the group")
    .argument("<item>", "id of the item")
    .argument("[fields...]", "its members as key=value")
    .option("--value <json>", "the whole item: JSON, @file, or - for standard input")
    .option("--ttl-ms <n>", "remove it after this many milliseconds")
    .option("--json", "print JSON on one line, for programs")
    .option("--url <url>", URL_HELP)
    .option("--token <token>", TOKEN_HELP)
    .addHelpText("after", EXAMPLES)
    .action(async (name, group, item, fields, flags) => {
      if (fields.length === 0 && flags.value === undefined) {
        throw new UsageError("Missing item. Example: engine stream set chat room-1 m7 text=hi");
      }
      const { readFile, readInput } = terminal;
      const payload = { fields, payload: flags.value, option: "--value", readFile, readInput };
      const data = await readPayload(payload);
      const ttl_ms = flags.ttlMs === undefined
        ? undefined
        : readNumber("--ttl-ms", flags.ttlMs, 1, TTL_MS_MAX);
      await using engine = await terminal.connect({ ...flags, isShort: true });
      const more = { data, ...ttl_ms !== undefined && { ttl_ms } };
      const changed = await ask(engine, "set", { stream: name, group, item }, more) as Json;
      terminal.out(flags.json ? compactJson(changed) : renderJson(changed));
    });
}

function addDelete(stream: Command, terminal: Terminal): void {
  stream.command("delete")
    .description("Remove an item, and print it")
    .argument("<stream>", "name of the stream")
    .argument("<group>", "id of the group")
    .argument("<item>", "id of the item")
    .option("--json", "print JSON on one line, for programs")
    .option("--url <url>", URL_HELP)
    .option("--token <token>", TOKEN_HELP)
    .addHelpText("after", EXAMPLES)
    .action(async (name, group, item, flags) => {
      await using engine = await terminal.connect({ ...flags, isShort: true });
      const place = { stream: name, group, item };
      const { old_value = null } = await ask(engine, "delete", place) as JsonObject;
      if (old_value === null) throw new CommandError(await missing(engine, place));
      terminal.out(flags.json ? compactJson(old_value) : renderJson(old_value));
    });
}

function addSend(stream: Command, terminal: Terminal): void {
  stream.command("send")
    .description("Send an event to the subscribers of a group; nothing is stored")
    .argument("<stream>", "name of the stream")
    .argument("<group>", "id of the group")
    .argument("<type>", "the name of the event, such as typing")
    .argument("[data]", "JSON, else text; - for standard input; left out: null")
    .option("--id <item>", "the item that it is about")
    .option("--url <url>", URL_HELP)
    .option("--token <token>", TOKEN_HELP)
    .addHelpText("after", EXAMPLES)
    .action(async (name, group, type, data, flags) => {
      const text = data === "-" ? (await terminal.readInput()).trimEnd() : data;
      const event: JsonObject = { type };
      if (text !== undefined) event.data = parseValue(text);
      if (flags.id !== undefined) event.id = flags.id;
      await using engine = await terminal.connect({ ...flags, isShort: true });
      await ask(engine, "send", { stream: name, group }, event);
    });
}

function addFollow(stream: Command, terminal: Terminal): void {
  stream.command("follow")
    .description("Follow the events of a stream, a group or an item, until Ctrl-C")
    .argument("<stream>", "name of the stream")
    .argument("[group]", "id of a group of the stream")
    .argument("[item]", "id of an item of the group")
    .option("--count <number>", "exit after this many events")
    .option("--json", "print each event as JSON, one a line")
    .option("--url <url>", URL_HELP)
    .option("--token <token>", TOKEN_HELP)
    .addHelpText("after", EXAMPLES)
    .action(async (name, group, item, flags) => {
      const most = flags.count === undefined
        ? Infinity
        : readNumber("--count", flags.count, 1, COUNT_MAX);
      const { promise: ended, resolve: end } = Promise.withResolvers<void>();
      const stopListening = terminal.onInterrupt(() => end());
      try {
        await using engine = await terminal.connect(flags);
        let heard = 0;
        const show = (event: Json): void => {
          if (heard === most) return;
          const line = flags.json ? compactJson(event) : lineOf(event as unknown as EventView);
          terminal.out(line);
          if (++heard === most) end();
        };
        const place = { stream: name, group, item };
        const { lost } = await engine.follow("stream", payloadOf(place), show);
        terminal.err(`Following ${placeText(place)}`);
        const all = await streamsOf(engine).catch(() => []);
        if (!all.some(({ id }) => id === name)) terminal.err(noStream(name, all));
        await Promise.race([ended, lost]);
      } finally {
        stopListening();
      }
    });
}

function addStats(stream: Command, terminal: Terminal): void {
  stream.command("stats")
    .description("Print the subscribers of streams, and what was sent to them")
    .option("--json", "print JSON on one line, for programs")
    .option("--url <url>", URL_HELP)
    .option("--token <token>", TOKEN_HELP)
    .addHelpText("after", EXAMPLES)
    .action(async (flags) => {
      await using engine = await terminal.connect({ ...flags, isShort: true });
      const answer = await engine.call("engine::stream::stats", {});
      if (flags.json) return terminal.out(compactJson(answer!));
      const stats = answer as unknown as StatsView;
      terminal.out(`${stats.url}: ${stats.connections} of ${stats.connections_max} connections`);
      terminal.out(
        `${count(stats.subscriptions, "subscription")}, ${count(stats.events_sent, "event")} ` +
          `sent, ${count(stats.closed_slow, "client")} closed for reading too slowly`,
      );
      if (stats.streams.length === 0) return;
      const rows = stats.streams.map((each) => [
        each.stream_name,
        String(each.subscriptions),
        String(each.events),
      ]);
      const columns = ["STREAM", "SUBSCRIPTIONS", "EVENTS"];
      for (const line of renderTable(columns, rows)) terminal.out(line);
    });
}

/** An event as a line: time, what happened, where, with what. */
function lineOf({ timestamp, groupId, id, event }: EventView): string {
  const { type, data } = event.type === "event" ? event.event : event;
  const where = id === null ? groupId : `${groupId} ${id}`;
  const sent = event.type === "event" ? "event " : "";
  const line = `${new Date(timestamp).toISOString()} ${where} ${sent}${type}`;
  return `${printable(line).replaceAll(/[\t\n]/g, " ")} ${compactJson(data)}`;
}

/** What there is: streams, groups of a stream, or items of a group. */
async function listing(
  engine: EngineConnection,
  stream: string | undefined,
  group: string | undefined,
  limit: number,
  terminal: Terminal,
): Promise<{ all: Json; head: string[]; rows: string[][] }> {
  if (stream === undefined) {
    const all = await streamsOf(engine);
    const rows = all.map(({ id, groups }) => [id, String(groups.length)]);
    return { all: all as unknown as Json, head: ["STREAM", "GROUPS"], rows };
  }
  if (group === undefined) {
    const all = await ask(engine, "list_groups", { stream }) as string[];
    return { all, head: ["GROUP"], rows: all.map((each) => [each]) };
  }
  const answer = await ask(engine, "list_items", { stream, group }, { limit }) as JsonObject;
  if (answer.cursor !== undefined) terminal.err(`The first ${limit}; more with --limit`);
  const rows = (answer.items as unknown as ItemView[]).map(({ id, data }) => [id, short(data)]);
  return { all: answer.items!, head: ["ITEM", "DATA"], rows };
}

/** All streams, of all pages; one that goes on in the next page is one stream. */
async function streamsOf(engine: EngineConnection): Promise<readonly StreamView[]> {
  const streams: { id: string; groups: string[] }[] = [];
  let cursor: Json | undefined;
  do {
    const page = cursor === undefined ? {} : { cursor };
    const answer = await engine.call("stream::list_all", page) as JsonObject;
    for (const { id, groups } of answer.stream as unknown as readonly StreamView[]) {
      if (streams.at(-1)?.id !== id) streams.push({ id, groups: [] });
      for (const group of groups) streams.at(-1)!.groups.push(group);
    }
    cursor = answer.cursor;
  } while (cursor !== undefined);
  return streams;
}

async function ask(
  engine: EngineConnection,
  op: string,
  place: Place,
  more: JsonObject = {},
): Promise<Json | undefined> {
  return await engine.call(`stream::${op}`, { ...payloadOf(place), ...more });
}

function payloadOf({ stream, group, item }: Place): JsonObject {
  return {
    stream_name: stream,
    ...group !== undefined && { group_id: group },
    ...item !== undefined && { item_id: item },
  };
}

/** Says that something is not there, with the nearest stream or group that is. */
async function missing(engine: EngineConnection, place: Place): Promise<string> {
  const { stream, group, item } = place;
  // There may be too many streams for one answer.
  const all = await streamsOf(engine).catch(() => []);
  const known = all.find(({ id }) => id === stream);
  if (!known) return noStream(stream, all);
  if (!known.groups.includes(group!)) {
    const hint = nearest(group!, known.groups);
    return `Stream ${printable(stream)} has no items in group ${printable(group!)}${hint}`;
  }
  const where = placeText({ stream, group });
  return item === undefined ? `No items in ${where}` : `No item ${printable(item)} in ${where}`;
}

function noStream(name: string, all: readonly StreamView[]): string {
  return `No items in stream ${printable(name)}${nearest(name, all.map(({ id }) => id))}`;
}

function nearest(name: string, known: readonly string[]): string {
  const [found] = similarNames(name, known);
  return found === undefined ? "" : `; did you mean ${printable(found)}?`;
}

function placeText({ stream, group, item }: Place): string {
  return printable([stream, group, item].filter((part) => part !== undefined).join(" / "));
}

function short(data: Json): string {
  const text = compactJson(data);
  return text.length <= ITEM_CHARS ? text : `${text.slice(0, ITEM_CHARS - 1)}…`;
}
