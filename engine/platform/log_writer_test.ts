import assert from "node:assert/strict";
import {
  type EngineLogLine,
  type Log,
  LOG_VALUE_CHARS_MAX,
  type LogFields,
  type LogLevel,
} from "../ports/log.ts";
import { createLog, logEvent, type LogFormat } from "./log_writer.ts";

Deno.test("a text line holds time, level, text and fields", () => {
  const { log, lines } = setup("text");

  log.info("Worker joined", { worker: "shop", functions: 4, local: true, note: null });

  assert.deepEqual(lines, [
    "1970-01-01T00:00:01.500Z info  Worker joined worker=shop functions=4 local=true note=null",
  ]);
});

Deno.test("a text line puts quotes round values that hold spaces, quotes or nothing", () => {
  const { log, lines } = setup("text");

  log.warn("Refused", { reason: 'says "no" = no', empty: "", left_out: undefined });

  assert.equal(
    lines[0],
    '1970-01-01T00:00:01.500Z warn  Refused reason="says \\"no\\" = no" empty=""',
  );
});

Deno.test("a JSON line holds the same fields with their types", () => {
  const { log, lines } = setup("json");

  log.error("Start failed", { port: 3111, worker: null, ok: false, left_out: undefined });

  assert.deepEqual(JSON.parse(lines[0]!), {
    time: "1970-01-01T00:00:01.500Z",
    level: "error",
    text: "Start failed",
    port: 3111,
    worker: null,
    ok: false,
  });
});

Deno.test("a JSON field cannot replace time, level or text", () => {
  const { log, lines } = setup("json");

  log.info("Joined", { text: "forged", level: "error", time: 1 });

  const { text, level, text_, level_, time_ } = JSON.parse(lines[0]!);
  assert.deepEqual([text, level, text_, level_, time_], ["Joined", "info", "forged", "error", 1]);
});

for (const format of ["text", "json"] as const) {
  Deno.test(`a ${format} line has no control characters, neither in text nor in fields`, () => {
    const { log, lines } = setup(format);
    const evil = "a\u001b[2J\r\nb\u0000\u007f\u009b31m\u202ec\u2028d";

    log.info(evil, { value: evil, [evil]: 1 });

    // deno-lint-ignore no-control-regex
    assert.doesNotMatch(lines[0]!, /[\u0000-\u001f\u007f-\u009f\u202e\u2028]/);
    assert.match(lines[0]!, /a\[2J b31mcd/);
  });

  Deno.test(`a ${format} line shortens a long value`, () => {
    const { log, lines } = setup(format);

    log.info("Long", { value: "x".repeat(10 * LOG_VALUE_CHARS_MAX) });

    assert.ok(lines[0]!.length < LOG_VALUE_CHARS_MAX + 200);
    assert.match(lines[0]!, /x…/);
  });
}

Deno.test("a log writes its level and what is above it, and follows a change", () => {
  let level: LogLevel = "warn";
  const lines: string[] = [];
  const log = createLog({ level: () => level, format: "text", write: (l) => lines.push(l) });

  writeAll(log);
  assert.deepEqual(lines.map((line) => line.split(" ")[1]), ["warn", "error"]);

  level = "debug";
  writeAll(log);
  assert.equal(lines.length, 6);
});

Deno.test("a log does not throw when its line cannot be written", () => {
  const write = () => {
    throw new Deno.errors.BrokenPipe("gone");
  };
  const log = createLog({ level: () => "debug", format: "json", write });

  writeAll(log);
});

Deno.test("a log does not throw at values that its types forbid", () => {
  const { log, lines } = setup("json");
  const big = 1n as unknown as number;

  log.info("Odd", { big });
  log.info("Next");

  assert.equal(lines.length, 1);
});

function writeAll(log: Log): void {
  for (const level of ["debug", "info", "warn", "error"] as const) log[level]("Text");
}

function setup(format: LogFormat): { log: Log; lines: string[] } {
  const lines: string[] = [];
  const write = (line: string) => void lines.push(line);
  return { log: createLog({ level: () => "debug", format, write, wall: () => 1_500 }), lines };
}

Deno.test("the observer of a log gets every line unchanged, also below the level", () => {
  const heard: EngineLogLine[] = [];
  const log = createLog({
    level: () => "warn",
    format: "text",
    write: () => {},
    wall: () => 7,
    observe: (line) => heard.push(line),
  });

  log.debug("line opened", { id: "a" });
  log.error("full");

  assert.deepEqual(heard, [
    { level: "debug", text: "line opened", fields: { id: "a" }, at_ms: 7 },
    { level: "error", text: "full", fields: {}, at_ms: 7 },
  ]);
});

Deno.test("logEvent() writes a trigger that waits for its type at info, with what it names", () => {
  const { log, lines } = eventLog();
  const trigger = { trigger_id: "t1", trigger_type: "cron", function_id: "docs::index" };
  const why = "no worker provides the trigger type cron";

  logEvent(log, { type: "trigger_parked", worker_id: "w1", ...trigger, why });

  assert.deepEqual(lines, [
    'info trigger waits for its type {"id":"w1","trigger":"t1","trigger_type":"cron",' +
    '"function_id":"docs::index","why":"no worker provides the trigger type cron"}',
  ]);
});

Deno.test("logEvent() writes workers that come and go at info, connections and commands at debug", () => {
  const { log, lines } = eventLog();

  logEvent(log, { type: "worker_connected", worker_id: "w1", address: "127.0.0.1" });
  logEvent(log, {
    type: "worker_announced",
    worker_id: "w1",
    name: "shop",
    pid: 7,
    launch_id: null,
  });
  logEvent(log, { type: "worker_disconnected", worker_id: "w1", name: "shop", reason: "closed" });
  logEvent(log, { type: "worker_disconnected", worker_id: "w2", name: null, reason: "closed" });
  logEvent(log, { type: "worker_disconnected", worker_id: "w3", name: "engine-cli", reason: "" });
  logEvent(log, { type: "warning", text: "overloaded", worker_id: "w1", detail: "10000 calls" });

  assert.deepEqual(lines.map((line) => line.split(" ")[0]), [
    "debug",
    "info",
    "info",
    "debug",
    "debug",
    "warn",
  ]);
});

Deno.test("logEvent() writes changes of configuration at debug, those of workers not at all", () => {
  const { log, lines } = eventLog();

  logEvent(log, { type: "supervised_changed", name: "shop" });
  logEvent(log, { type: "config_changed" });

  assert.deepEqual(lines.map((line) => line.split(" ")[0]), ["debug"]);
});

/** A log that keeps its lines as `level text fields`. */
function eventLog() {
  const lines: string[] = [];
  const write = (level: string) => (text: string, fields?: LogFields) =>
    void lines.push(`${level} ${text} ${JSON.stringify(fields)}`);
  const log: Log = {
    debug: write("debug"),
    info: write("info"),
    warn: write("warn"),
    error: write("error"),
  };
  return { log, lines };
}
