/**
 * `engine top`: show live what functions and workers do, over the last 10 seconds.
 *
 * On a terminal it uses the alternate screen and restores it; elsewhere it prints one table.
 *
 * @module
 */
import { type Command, Option } from "@commander-js/extra-typings";
import type { Json } from "../../mod.ts";
import { readNumber, TOKEN_HELP, URL_HELP } from "../arguments.ts";
import type { EngineConnection } from "../connect.ts";
import { CommandError } from "../failure.ts";
import type { EngineRow } from "../../engine/mod.ts";
import { readCluster, renderEngines } from "../cluster/view.ts";
import { compactJson, count, renderBytes, renderTable } from "../render.ts";
import { type Keyboard, keyboardAt, LiveLines, type Screen } from "../screen.ts";
import { interruptible, type Terminal } from "../terminal.ts";
import { readSuspects } from "./worker/diagnosis.ts";

const EXAMPLES = `
Keys: c calls, e errors, p p99, r running, m memory, n name, q quit.

Examples:
  engine top
  engine top --sort errors
  engine top --once --json`;

/** The part of the result of `engine::metrics::sample` that is shown. */
export interface TopSample {
  readonly engine: {
    readonly calls_per_s: number;
    readonly errors_per_s: number;
    readonly p50_ms: number | null;
    readonly p99_ms: number | null;
    readonly in_flight: number;
    readonly held: number;
    readonly lines: number;
    readonly queued_bytes: number;
    readonly event_loop_lag_ms: number;
    readonly memory_bytes: number;
    readonly cpu_percent: number | null;
  };
  readonly functions: readonly {
    readonly function_id: string;
    readonly namespace: string;
    readonly calls_per_s: number;
    readonly errors_per_s: number;
    readonly p50_ms: number | null;
    readonly p99_ms: number | null;
    readonly in_flight: number;
    /** The other engine whose workers offer it; only in a cluster. */
    readonly engine?: string;
  }[];
  /** The engines of the cluster; absent: the engine is alone. */
  readonly engines?: readonly EngineRow[];
  readonly workers: readonly {
    readonly worker_id: string;
    /** It does not answer. */
    readonly suspect?: boolean;
    readonly name: string;
    readonly in_flight: number;
    readonly queued_bytes: number;
    readonly memory_bytes: number | null;
    readonly cpu_percent: number | null;
    readonly event_loop_lag_ms: number | null;
    /** The other engine that the connection leads to. */
    readonly engine?: string;
  }[];
}

/** Orders, and the keys that select them. */
export const SORT_KEYS = {
  calls: "c",
  errors: "e",
  p99: "p",
  running: "r",
  memory: "m",
  name: "n",
} as const;

/** The largest value of this column comes first; names are in alphabetical order. */
export type SortKey = keyof typeof SORT_KEYS;

/** How a sample is shown. */
export interface TopOptions {
  readonly sort: SortKey;
  /** Lines of the screen. Default: no limit. */
  readonly rows?: number;
}

const ORDERS = Object.keys(SORT_KEYS) as SortKey[];
const HINT = "sort: c calls  e errors  p p99  r running  m memory  n name    q quit";
/** Functions whose engine is asked for; the engine answers no more at once. */
const ENGINES_ASKED_MAX = 32;
/** Engines that are shown. */
const ENGINES_SHOWN_MAX = 8;
/** Rates are those of this time, in seconds. */
const WINDOW_S = 10;
/** To the alternate screen without a cursor, and back. */
const ENTER = "\x1b[?1049h\x1b[?25l";
const LEAVE = "\x1b[?25h\x1b[?1049l";

/** Adds `engine top`. */
export function addTop(
  program: Command,
  terminal: Terminal,
  keyboard: Keyboard = keyboardAt(),
): void {
  program.command("top")
    .description("Show live rates, latencies and errors of functions, and workers")
    .addOption(
      new Option("--sort <key>", "column to sort by").choices(ORDERS).default("calls" as SortKey),
    )
    .option("--interval <ms>", "time between two samples", "1000")
    .option("--all", "also the engine's own")
    .option("--once", "print one table and exit")
    .option("--json", "print JSON on one line and exit, for programs")
    .option("--url <url>", URL_HELP)
    .option("--token <token>", TOKEN_HELP)
    .addHelpText("after", EXAMPLES)
    .action(async (flags) => {
      const intervalMs = readNumber("--interval", flags.interval, 200, 60_000);
      await using engine = await terminal.connect(flags);
      const sort = flags.sort as SortKey;
      const source = { engine, showsAll: flags.all ?? false };
      const { screen } = terminal;
      if (flags.json || flags.once || !screen) {
        return await printOnce(source, terminal, sort, flags.json ?? false);
      }
      await follow({ source, terminal, screen, keyboard, intervalMs }, sort);
    });
}

async function printOnce(
  source: Source,
  terminal: Terminal,
  sort: SortKey,
  isJson: boolean,
): Promise<void> {
  const sample = await readSample(source);
  if (isJson) return terminal.out(compactJson(sample as unknown as Json));
  for (const line of topLines(sample, { sort })) terminal.out(line);
}

/** What {@linkcode follow} needs. */
interface Following {
  readonly source: Source;
  readonly terminal: Terminal;
  readonly screen: Screen;
  readonly keyboard: Keyboard;
  readonly intervalMs: number;
}

/** Draws until the user quits or the connection is lost. */
async function follow(
  { source, terminal, screen, keyboard, intervalMs }: Following,
  first: SortKey,
): Promise<void> {
  await interruptible(terminal, async (interrupted) => {
    const quit = new AbortController();
    const ended = AbortSignal.any([interrupted, quit.signal]);
    const lines = new LiveLines(screen, terminal.env("NO_COLOR") === undefined);
    let sort = first;
    let sample: TopSample | undefined;
    const draw = (): void => {
      if (!sample || ended.aborted) return;
      const { rows } = screen.size();
      const body = topLines(sample, { sort, rows: rows - 3 }).map((text) => ({ text }));
      lines.draw([...body, { text: "" }, { text: "", dimmed: `${HINT}   by ${sort}` }]);
    };
    const stopKeys = keyboard.listen((key) => {
      if (key === "q") return quit.abort();
      sort = ORDERS.find((order) => SORT_KEYS[order] === key) ?? sort;
      draw();
    });
    screen.write(ENTER);
    try {
      while (!ended.aborted) {
        sample = await readSample(source);
        draw();
        await terminal.wait(intervalMs, ended);
      }
    } finally {
      stopKeys?.();
      screen.write(LEAVE);
    }
  });
}

/** Where samples come from. */
interface Source {
  readonly engine: EngineConnection;
  /** Whether functions of the engine itself count, which include the calls of this command. */
  readonly showsAll: boolean;
}

/** @throws {CommandError} The engine has no metrics. */
async function readSample({ engine, showsAll }: Source): Promise<TopSample> {
  const [sample, suspects, { cluster, engines }] = await Promise.all([
    engine.call("engine::metrics::sample", { window_s: WINDOW_S }),
    readSuspects(engine),
    readCluster(engine),
  ]);
  if (sample && typeof sample === "object" && "engine" in sample) {
    const ids = new Set(suspects.map(({ id }) => id));
    const { workers, functions, ...rest } = sample as unknown as TopSample;
    const marked = workers.map((one) => ({ ...one, suspect: ids.has(one.worker_id) }));
    const shown = functions.filter((each) => showsAll || !isOwn(each.function_id));
    if (cluster === null) return { ...rest, functions: shown, workers: marked };
    const near = marked.filter((worker) => worker.engine === undefined);
    return { ...rest, engines, functions: await withEngines(shown, engine), workers: near };
  }
  throw new CommandError("The engine reports no metrics; it may be an older version");
}

/** The first functions with the engine of each. */
async function withEngines(
  functions: TopSample["functions"],
  engine: EngineConnection,
): Promise<TopSample["functions"]> {
  const function_ids = functions.slice(0, ENGINES_ASKED_MAX).map((each) => each.function_id);
  const answer = await engine.call("engine::functions::info", { function_ids })
    .catch(() => undefined) as { functions?: { function_id: string; engine?: string }[] };
  const found = new Map(answer?.functions?.map((each) => [each.function_id, each.engine]));
  return functions.map((each) => {
    const at = found.get(each.function_id);
    return at === undefined ? each : { ...each, engine: at };
  });
}

function isOwn(function_id: string): boolean {
  return function_id.startsWith("engine::");
}

/** Lines for the engine, heads and empty lines. */
const OTHER_LINES = 5;

/** A sample as lines: the engine, its workers, its functions. */
export function topLines(sample: TopSample, { sort, rows = Infinity }: TopOptions): string[] {
  const engines = engineRows(sample);
  const room = Math.max(2, rows - OTHER_LINES - engines.length);
  // Workers get a third of the room, and what functions leave free.
  const workerRoom = Math.max(1, Math.floor(room / 3), room - sample.functions.length);
  const workers = shorten(workerRows(sample, sort), workerRoom);
  const functions = shorten(functionRows(sample, sort), Math.max(1, room - workers.length));
  return [
    engineLine(sample.engine),
    ...engines,
    "",
    ...renderTable(["WORKER", "RUNNING", "QUEUED", "MEMORY", "CPU", "LAG"], workers),
    "",
    ...renderTable(functionHead(sample), functions),
  ];
}

/** The engines of the cluster, below an empty line; nothing for an engine that is alone. */
function engineRows({ engines = [] }: TopSample): string[] {
  if (engines.length === 0) return [];
  const [head = "", ...lines] = renderEngines(engines);
  return ["", head, ...shorten(lines.map((line) => [line]), ENGINES_SHOWN_MAX).flat()];
}

function functionHead({ engines }: TopSample): string[] {
  const at = engines === undefined ? [] : ["ENGINE"];
  return ["FUNCTION", ...at, "CALLS/S", "ERRORS/S", "P50", "P99", "RUNNING"];
}

function engineLine(engine: TopSample["engine"]): string {
  const parts = [
    `${rate(engine.calls_per_s)} calls/s`,
    `${rate(engine.errors_per_s)} errors/s`,
    `p50 ${duration(engine.p50_ms)}`,
    `p99 ${duration(engine.p99_ms)}`,
    `${engine.in_flight} running`,
    ...engine.held > 0 ? [`${engine.held} parked`] : [],
    count(engine.lines, "connection"),
    ...engine.queued_bytes > 0 ? [`${renderBytes(engine.queued_bytes)} queued`] : [],
    `lag ${duration(engine.event_loop_lag_ms)}`,
    renderBytes(engine.memory_bytes),
    `cpu ${percent(engine.cpu_percent)}`,
  ];
  return parts.join("  ");
}

function workerRows({ workers }: TopSample, sort: SortKey): string[][] {
  const value = (worker: TopSample["workers"][number]): number =>
    sort === "memory" ? worker.memory_bytes ?? -1 : worker.in_flight;
  return workers.toSorted((a, b) =>
    (sort === "name" ? 0 : value(b) - value(a)) || byName(a.name, b.name)
  ).map((worker) => [
    worker.suspect ? `${worker.name} (suspect)` : worker.name,
    String(worker.in_flight),
    worker.queued_bytes === 0 ? "-" : renderBytes(worker.queued_bytes),
    worker.memory_bytes === null ? "-" : renderBytes(worker.memory_bytes),
    percent(worker.cpu_percent),
    duration(worker.event_loop_lag_ms),
  ]);
}

function functionRows({ functions, engines }: TopSample, sort: SortKey): string[][] {
  const value = (each: TopSample["functions"][number]): number => {
    switch (sort) {
      case "errors":
        return each.errors_per_s;
      case "p99":
        return each.p99_ms ?? -1;
      case "running":
        return each.in_flight;
      default:
        return each.calls_per_s;
    }
  };
  return functions.toSorted((a, b) =>
    (sort === "name" ? 0 : value(b) - value(a)) || byName(a.function_id, b.function_id)
  ).map((each) => [
    each.namespace === "default" || each.namespace === ""
      ? each.function_id
      : `${each.function_id} (${each.namespace})`,
    ...engines === undefined ? [] : [each.engine ?? "here"],
    rate(each.calls_per_s),
    rate(each.errors_per_s),
    duration(each.p50_ms),
    duration(each.p99_ms),
    String(each.in_flight),
  ]);
}

/** The first rows; the last one counts those that are left out. */
function shorten(rows: readonly string[][], room: number): string[][] {
  if (rows.length <= room) return [...rows];
  const shown = rows.slice(0, Math.max(0, room - 1));
  return [...shown, [`… and ${rows.length - shown.length} more`]];
}

function byName(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function rate(value: number): string {
  return value === 0 || value >= 100 ? String(Math.round(value)) : value.toFixed(1);
}

function duration(ms: number | null): string {
  if (ms === null) return "-";
  if (ms >= 1_000) return `${(ms / 1_000).toFixed(1)} s`;
  return `${ms >= 100 ? Math.round(ms) : ms.toFixed(1)} ms`;
}

function percent(value: number | null): string {
  return value === null ? "-" : `${Math.round(value)}%`;
}
