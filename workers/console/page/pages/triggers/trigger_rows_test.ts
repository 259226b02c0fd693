import assert from "node:assert/strict";
import {
  socketPathOf,
  type TriggerItem,
  type TriggerRow,
  triggerRows,
  type TriggerView,
  withConnections,
} from "./trigger_rows.ts";

const ALL: TriggerView = { search: "", type: "", closed: new Set(), own: false };
const TYPES = ["state", "http", "cron"].map((id) => ({
  id,
  namespace: "default",
  worker_name: `engine-${id}`,
  description: `About ${id}`,
}));

function item(id: string, trigger_type: string, config: TriggerItem["config"] = {}): TriggerItem {
  const config_summary = JSON.stringify(config);
  return { id, trigger_type, function_id: "a::b", worker_name: "shop", config, config_summary };
}

function say(rows: readonly TriggerRow[]): string[] {
  return rows.map((row) =>
    row.kind === "type"
      ? `${row.id} (${row.count})${row.type ? "" : " parked"}`
      : `  ${row.item.id}`
  );
}

Deno.test("triggerRows() groups by type, types without triggers last", () => {
  const items = [
    item("2", "http", { api_path: "/b" }),
    item("1", "state", { scope: "cart" }),
    item("3", "http", { api_path: "/a" }),
  ];

  const { rows, count } = triggerRows(items, TYPES, ALL);

  assert.equal(count, 3);
  assert.deepEqual(say(rows), ["http (2)", "  3", "  2", "state (1)", "  1", "cron (0)"]);
});

Deno.test("triggerRows() includes a type that no worker provides", () => {
  const { rows } = triggerRows([item("1", "file-watch")], [], ALL);

  assert.deepEqual(say(rows), ["file-watch (1) parked", "  1"]);
});

Deno.test("triggerRows() includes types of the engine if they have triggers or on request", () => {
  const type = { ...TYPES[0]!, id: "engine::workers-available" };
  const shown = (items: TriggerItem[], own: boolean) =>
    say(triggerRows(items, [type], { ...ALL, own }).rows);

  assert.deepEqual(shown([], false), []);
  assert.deepEqual(shown([], true), [`${type.id} (0)`]);
  assert.deepEqual(shown([item("1", type.id)], false), [`${type.id} (1)`, "  1"]);
});

Deno.test("triggerRows() can show one type alone, and collapse it", () => {
  const items = [item("1", "http", { api_path: "/a" }), item("2", "state")];

  assert.deepEqual(say(triggerRows(items, TYPES, { ...ALL, type: "state" }).rows), [
    "state (1)",
    "  2",
  ]);
  const closed = new Set(["http", "state"]);
  assert.deepEqual(say(triggerRows(items, TYPES, { ...ALL, closed }).rows), [
    "http (1)",
    "state (1)",
    "cron (0)",
  ]);
});

Deno.test("triggerRows() searches routes, functions and workers, and leaves out empty types", () => {
  const items = [
    item("1", "http", { api_path: "/orders/:id", http_method: "post" }),
    item("2", "state"),
  ];
  const found = (search: string) => say(triggerRows(items, TYPES, { ...ALL, search }).rows);

  assert.deepEqual(found("POST orders"), ["http (1)", "  1"]);
  assert.deepEqual(found("a::b shop state"), ["state (1)", "  2"]);
  assert.deepEqual(found("nothing"), []);
});

Deno.test("withConnections() adds them to triggers of WebSockets by their path", () => {
  const items = [
    item("1", "websocket", { api_path: "chat/:room" }),
    item("2", "http", { api_path: "/chat/:room" }),
    item("3", "websocket", { api_path: "/unknown" }),
    item("4", "websocket", { api_path: 5 }),
    item("5", "websocket", null),
  ];

  assert.equal(withConnections(items, []), items);
  const counted = withConnections(items, [{ api_path: "/chat/:room", connections: 7 }]);
  assert.deepEqual(counted.map(({ connections }) => connections), [7, ...Array(4).fill(undefined)]);
  assert.deepEqual(items.map(socketPathOf), [
    "/chat/:room",
    undefined,
    "/unknown",
    undefined,
    undefined,
  ]);
});
