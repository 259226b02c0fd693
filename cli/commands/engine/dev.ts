/**
 * `engine dev`: an engine, its console and the output of its workers in one terminal.
 *
 * The engine is the one of `engine` without a command; it watches config.yaml and the files of its
 * workers in any case. Besides it prints what workers print, with their names, and serves a console
 * unless config.yaml makes the engine serve one.
 *
 * @module
 */
import type { Command } from "@commander-js/extra-typings";
import type { ConsoleOptions, Engine, EngineConsole } from "../../../engine/mod.ts";
import type { Json } from "../../../mod.ts";
import { readNumber } from "../../arguments.ts";
import { printable } from "../../render.ts";
import type { Terminal } from "../../terminal.ts";
import { readOptions, runEngine, startOptions, startReal } from "./start.ts";

const EXAMPLES = `
Examples:
  engine dev                       config.yaml here; console on http://127.0.0.1:3113
  engine dev --console-port 0      console on any free port

Edits of config.yaml and of workers take effect at once. Ctrl-C stops everything.`;

/** Time between two prints of what workers printed. */
const PRINT_MS = 100;
/** A port of the console, if none is given and the usual one is taken. */
const ANY_PORT = 0;
const CONSOLE_PORT = 3113;

/** A record of the log, as triggers of the type `log` get it. */
interface LogView {
  readonly severity_text: string;
  readonly body: string;
  readonly attributes: Readonly<Record<string, Json>>;
  readonly service_name: string;
}

/** What the command needs besides the terminal; tests provide their own. */
export interface DevParts {
  startEngine: typeof startReal;
  startConsole(options: ConsoleOptions): Promise<EngineConsole>;
  /** The address, with key, of a console that the engine serves. */
  operatorUrl(consoleUrl: string, engineUrl: string): Promise<string>;
}

/** Adds `engine dev`. */
export function addDev(
  program: Command,
  terminal: Terminal,
  parts: DevParts = realParts,
): void {
  startOptions(program.command("dev"))
    .description("Start the engine with its console, and print what workers print")
    .option("--console-port <port>", "port of the console", `${CONSOLE_PORT}`)
    .addHelpText("after", EXAMPLES)
    .action(async ({ consolePort, ...flags }) => {
      const options = readOptions(flags, terminal.directory);
      const port = readNumber("--console-port", consolePort, 0, 65_535);
      await runEngine(
        options,
        terminal,
        parts.startEngine,
        (engine) => accompany(engine, port, terminal, parts),
      );
    });
}

/** Serves a console and prints what workers print until the result is disposed of. */
async function accompany(
  engine: Engine,
  port: number,
  terminal: Terminal,
  parts: DevParts,
): Promise<AsyncDisposable> {
  const { endpoints } = engine.info();
  const urlOf = (name: string): string | undefined =>
    endpoints.find((each) => each.name === name)?.url;
  const url = urlOf("workers")!;
  const { token } = await terminal.locate({ url });
  await using stack = new AsyncDisposableStack();
  const served = urlOf("console");
  const page = served === undefined
    ? stack.use(await startConsole({ url, port, ...token !== undefined && { token } }, parts))
      .operatorUrl
    : await parts.operatorUrl(served, url);
  terminal.out(`console  ${page}`);
  const connection = stack.use(await terminal.connect({ url, token }));
  await connection.follow("log", { batch_ms: PRINT_MS }, (batch) => {
    const { logs, dropped } = batch as unknown as { logs: readonly LogView[]; dropped: number };
    for (const record of logs) printRecord(record, terminal);
    if (dropped > 0) terminal.err(`… ${dropped} more lines; see engine logs WORKER`);
  });
  return stack.move();
}

async function startConsole(options: ConsoleOptions, parts: DevParts): Promise<EngineConsole> {
  try {
    return await parts.startConsole(options);
  } catch (thrown) {
    const isTaken = (thrown as { code?: unknown }).code === "address_in_use";
    if (!isTaken || options.port !== CONSOLE_PORT) throw thrown;
    return await parts.startConsole({ ...options, port: ANY_PORT });
  }
}

/** The engine prints its own log itself. */
function printRecord(record: LogView, terminal: Terminal): void {
  const { severity_text, body, attributes, service_name } = record;
  if (attributes["engine.source"] === "engine") return;
  const name = String(attributes["engine.worker"] ?? service_name);
  const level = severity_text === "INFO" ? "" : ` ${severity_text}`;
  for (const line of body.split("\n")) terminal.out(printable(`${name}${level} | ${line}`));
}

const realParts: DevParts = {
  startEngine: startReal,
  async startConsole(options) {
    const { startConsole } = await import("../../../engine/mod.ts");
    return await startConsole(options);
  },
  async operatorUrl(consoleUrl, engineUrl) {
    const { operatorUrl } = await import("../../../engine/mod.ts");
    return await operatorUrl(consoleUrl, engineUrl);
  },
};
