import assert from "node:assert/strict";
import { EventHub } from "./event_hub.ts";
import type { Log, LogFields } from "../ports/log.ts";

function setup() {
  const lines: string[] = [];
  const write = (level: string) => (text: string, fields?: LogFields) =>
    void lines.push(`${level} ${text} ${JSON.stringify(fields)}`);
  const log: Log = {
    debug: write("debug"),
    info: write("info"),
    warn: write("warn"),
    error: write("error"),
  };
  return { hub: new EventHub(log), lines };
}

Deno.test("EventHub.report() tells every listener until it stops listening", () => {
  const { hub } = setup();
  const heard: string[] = [];
  const stop = hub.listen((event) => void heard.push(`a ${event.type}`));
  hub.listen((event) => void heard.push(`b ${event.type}`));

  hub.report({ type: "triggers_changed", worker_id: "w1" });
  stop();
  hub.report({ type: "functions_changed", worker_id: "w1", ids_changed: true });

  assert.deepEqual(heard, ["a triggers_changed", "b triggers_changed", "b functions_changed"]);
});

Deno.test("EventHub.report() survives a listener that throws", () => {
  const { hub, lines } = setup();
  const heard: string[] = [];
  hub.listen(() => {
    throw new Error("broken");
  });
  hub.listen((event) => void heard.push(event.type));

  hub.report({ type: "triggers_changed", worker_id: "w1" });

  assert.deepEqual(heard, ["triggers_changed"]);
  assert.ok(lines.some((line) => line.startsWith("error") && line.includes("broken")));
});

Deno.test("EventHub writes a trigger that waits for its type at info, with what it names", () => {
  const { hub, lines } = setup();
  const trigger = { trigger_id: "t1", trigger_type: "cron", function_id: "docs::index" };

  hub.report({ type: "trigger_parked", worker_id: "w1", ...trigger });

  assert.deepEqual(lines, [
    'info trigger waits for its type {"id":"w1","trigger":"t1","trigger_type":"cron",' +
    '"function_id":"docs::index"}',
  ]);
});

Deno.test("EventHub writes workers that come and go at info, lines and commands at debug", () => {
  const { hub, lines } = setup();

  hub.report({ type: "worker_connected", worker_id: "w1", address: "127.0.0.1" });
  hub.report({ type: "worker_announced", worker_id: "w1", name: "shop", pid: 7, launch_id: null });
  hub.report({ type: "worker_disconnected", worker_id: "w1", name: "shop", reason: "closed" });
  hub.report({ type: "worker_disconnected", worker_id: "w2", name: null, reason: "closed" });
  hub.report({ type: "worker_disconnected", worker_id: "w3", name: "engine-cli", reason: "" });
  hub.report({ type: "warning", text: "overloaded", worker_id: "w1", detail: "10000 calls" });

  assert.deepEqual(lines.map((line) => line.split(" ")[0]), [
    "debug",
    "info",
    "info",
    "debug",
    "debug",
    "warn",
  ]);
});

Deno.test("EventHub hands on what changed of workers and configuration, and keeps quiet", () => {
  const { hub, lines } = setup();
  const heard: string[] = [];
  hub.listen((event) => void heard.push(event.type));

  hub.report({ type: "supervised_changed", name: "shop" });
  hub.report({ type: "config_changed" });

  assert.deepEqual(heard, ["supervised_changed", "config_changed"]);
  assert.deepEqual(lines.map((line) => line.split(" ")[0]), ["debug"]);
});
