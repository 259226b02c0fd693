/**
 * `engine top`: what functions and workers do, live.
 *
 * On a terminal it takes the whole screen and gives it back as it was; anywhere else it prints one
 * table.
 *
 * @module
 */
import { type Command, Option } from "@commander-js/extra-typings";
import type { Json } from "../../mod.ts";
import { CommandError } from "../failure.ts";
import { type Keyboard, keyboardAt } from "../keyboard.ts";
import { LiveLines } from "../screen.ts";
import { compactJson } from "../render.ts";
import {
  type EngineLine,
  interruptible,
  readNumber,
  type Screen,
  type Terminal,
} from "../terminal.ts";
import { SORT_KEYS, type SortKey, topLines, type TopSample } from "../top_view.ts";

const EXAMPLES = `
Keys: c calls, e errors, p p99, r running, m memory, n name, q quit.

Examples:
  engine top
  engine top --sort errors
  engine top --once --json`;

const ORDERS = Object.keys(SORT_KEYS) as SortKey[];
const HINT = "sort: c calls  e errors  p p99  r running  m memory  n name    q quit";
/** Another screen without a cursor, and back. */
const ENTER = "\x1b[?1049h\x1b[?25l";
const LEAVE = "\x1b[?25h\x1b[?1049l";

/** Adds `engine top`. */
export function addTop(
  program: Command,
  terminal: Terminal,
  keyboard: Keyboard = keyboardAt(),
): void {
  program.command("top")
    .description("Show live what functions and workers do")
    .addOption(
      new Option("--sort <key>", "what comes first").choices(ORDERS).default("calls" as SortKey),
    )
    .option("--interval <ms>", "time between two looks", "1000")
    .option("--once", "print one table and end")
    .option("--json", "print JSON on one line and end, for programs")
    .option("--url <url>", "address of the engine (default: ENGINE_URL, ws://127.0.0.1:49134)")
    .option("--token <token>", "token of the engine (default: ENGINE_TOKEN)")
    .addHelpText("after", EXAMPLES)
    .action(async (flags) => {
      const intervalMs = readNumber("--interval", flags.interval, 200, 60_000);
      await using engine = await terminal.connect(flags);
      const sort = flags.sort as SortKey;
      const { screen } = terminal;
      if (flags.json || flags.once || !screen) {
        return await printOnce(engine, terminal, sort, flags.json ?? false);
      }
      await follow({ engine, terminal, screen, keyboard, intervalMs }, sort);
    });
}

async function printOnce(
  engine: EngineLine,
  terminal: Terminal,
  sort: SortKey,
  isJson: boolean,
): Promise<void> {
  const sample = await readSample(engine);
  if (isJson) return terminal.out(compactJson(sample as unknown as Json));
  for (const line of topLines(sample, { sort })) terminal.out(line);
}

/** What following works with. */
interface Following {
  readonly engine: EngineLine;
  readonly terminal: Terminal;
  readonly screen: Screen;
  readonly keyboard: Keyboard;
  readonly intervalMs: number;
}

/** Draws until somebody quits or the engine is gone. */
async function follow(
  { engine, terminal, screen, keyboard, intervalMs }: Following,
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
        sample = await readSample(engine);
        draw();
        await terminal.wait(intervalMs, ended);
      }
    } finally {
      stopKeys?.();
      screen.write(LEAVE);
    }
  });
}

/** @throws {CommandError} The engine has no metrics. */
async function readSample(engine: EngineLine): Promise<TopSample> {
  const sample = await engine.call("engine::metrics::sample", {});
  if (sample && typeof sample === "object" && "engine" in sample) {
    return sample as unknown as TopSample;
  }
  throw new CommandError("The engine says nothing of its metrics; it may be an older version");
}
