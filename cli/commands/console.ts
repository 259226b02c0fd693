/**
 * `engine console`: a web page that shows a running engine.
 *
 * If the engine serves a console itself, the command prints its address; otherwise it serves one
 * until Ctrl-C. The address contains a secret key, with which the page may manage workers.
 *
 * @module
 */
import type { Command } from "@commander-js/extra-typings";
import type { ConsoleOptions, EngineConsole, EngineInfo } from "../../engine/mod.ts";
import type { Json } from "../../mod.ts";
import { readNumber, TOKEN_HELP, URL_HELP } from "../arguments.ts";
import type { EngineAddress } from "../connect.ts";
import type { FoundEngine } from "../find_engine.ts";
import { CommandError } from "../failure.ts";
import { interruptible, type Terminal } from "../terminal.ts";

const EXAMPLES = `
Examples:
  engine console                          serve the page on http://127.0.0.1:3113
  engine console --open                   and show it in the browser
  engine console --port 0                 on any free port
  ENGINE_CONSOLE_TOKEN=… engine console --host 0.0.0.0      for other machines

The printed address contains a key, with which the page may manage workers. Without the key a page
shows the system and calls functions; if the engine has a token, or other machines reach the
address, it asks for a token first: ENGINE_CONSOLE_TOKEN, else the engine's own.

With "- name: engine-console" in config.yaml the engine serves the page itself; this command then
prints its address.`;

/** Default address of the page. */
const ADDRESS = { host: "127.0.0.1", port: 3113 };

interface ConsoleFlags extends EngineAddress {
  readonly host?: string | undefined;
  readonly port?: string | undefined;
  readonly open?: boolean | undefined;
}

/** What the command needs besides the terminal; tests provide their own. */
export interface ConsoleParts {
  /** Serves a console. */
  start(options: ConsoleOptions): Promise<EngineConsole>;
  /** The address, with key, of a console that the engine serves. */
  operatorUrl(consoleUrl: string, engineUrl: string): Promise<string>;
  /** Opens an address in the user's browser; whether that succeeded. */
  openBrowser(url: string): Promise<boolean>;
}

/** Adds `engine console`. */
export function addConsole(
  program: Command,
  terminal: Terminal,
  parts: ConsoleParts = REAL_PARTS,
): void {
  program.command("console")
    .description("Show the engine in a web page")
    .option("--port <port>", "port of the page (default: 3113)")
    .option("--host <host>", "address of the page (default: 127.0.0.1)")
    .option("--open", "show it in the browser")
    .option("--url <url>", URL_HELP)
    .option("--token <token>", TOKEN_HELP)
    .addHelpText("after", EXAMPLES)
    .action((flags) => runConsole(flags, terminal, parts));
}

async function runConsole(
  flags: ConsoleFlags,
  terminal: Terminal,
  parts: ConsoleParts,
): Promise<void> {
  const options = readOptions(flags, await terminal.locate(flags), terminal);
  const served = await servedByEngine(flags, terminal);
  if (served !== undefined && flags.port === undefined && flags.host === undefined) {
    const url = await parts.operatorUrl(served, options.url);
    terminal.out(`console  ${url}`);
    terminal.err("The engine serves it itself, as config.yaml says");
    return await show(url, flags, terminal, parts);
  }
  await using running = await start(options, parts);
  terminal.out(`console  ${running.operatorUrl}`);
  terminal.err("Press Ctrl-C to stop; the engine keeps running");
  await show(running.operatorUrl, flags, terminal, parts);
  await interruptible(terminal, (signal) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    signal.addEventListener("abort", () => resolve());
    return promise;
  });
}

function readOptions(
  flags: ConsoleFlags,
  { url, token }: FoundEngine,
  terminal: Terminal,
): ConsoleOptions & { readonly url: string } {
  const port = flags.port === undefined
    ? ADDRESS.port
    : readNumber("--port", flags.port, 0, 65_535);
  const host = flags.host ?? ADDRESS.host;
  return {
    url,
    host,
    port,
    ...token !== undefined && { token },
    ...typedOn(host, terminal.env("ENGINE_CONSOLE_TOKEN"), token),
  };
}

/**
 * The token that a page without the key asks for. Without a token of the console's own that is the
 * engine's, since a page must not give access to an engine that would refuse the client.
 *
 * @throws {CommandError} When other machines reach the address and there is no token.
 */
function typedOn(
  host: string,
  own: string | undefined,
  ofEngine: string | undefined,
): Pick<ConsoleOptions, "typed"> {
  if (own !== undefined) return { typed: { text: own, isOwn: true } };
  if (ofEngine) return { typed: { text: ofEngine, isOwn: false } };
  if (host === "localhost" || host === "::1" || /^127(\.\d{1,3}){3}$/.test(host)) return {};
  throw new CommandError(
    `Other machines can reach ${host}; set ENGINE_CONSOLE_TOKEN to a token that pages must send`,
  );
}

/** The address of the console that the engine serves; `undefined`: it serves none. */
async function servedByEngine(
  address: EngineAddress,
  terminal: Terminal,
): Promise<string | undefined> {
  await using engine = await terminal.connect(address);
  const info = await engine.call("engine::supervisor::info", {} as Json);
  const { endpoints } = info as unknown as EngineInfo;
  return endpoints.find(({ name }) => name === "console")?.url;
}

/** @throws {CommandError} When the port is taken. */
async function start(options: ConsoleOptions, parts: ConsoleParts): Promise<EngineConsole> {
  try {
    return await parts.start(options);
  } catch (thrown) {
    if ((thrown as { code?: unknown }).code !== "address_in_use") throw thrown;
    throw new CommandError(
      `Port ${options.port} is taken; stop the other program or choose another with --port`,
    );
  }
}

async function show(
  url: string,
  flags: ConsoleFlags,
  terminal: Terminal,
  parts: ConsoleParts,
): Promise<void> {
  if (!flags.open || await parts.openBrowser(url)) return;
  terminal.err("No browser could be started; open the address yourself");
}

const REAL_PARTS: ConsoleParts = {
  async start(options) {
    const { startConsole } = await import("../../engine/mod.ts");
    return await startConsole(options);
  },
  async operatorUrl(consoleUrl, engineUrl) {
    const { operatorUrl } = await import("../../engine/mod.ts");
    return await operatorUrl(consoleUrl, engineUrl);
  },
  async openBrowser(url) {
    try {
      const [program, ...args] = browserCommand(Deno.build.os, url);
      const stdio = { stdin: "null", stdout: "null", stderr: "null" } as const;
      return (await new Deno.Command(program!, { args, ...stdio }).output()).success;
    } catch {
      return false; // There is no such program here.
    }
  },
};

/** The command that opens an address in the user's browser on a platform of `Deno.build.os`. */
export function browserCommand(platform: string, url: string): string[] {
  if (platform === "darwin") return ["open", url];
  if (platform === "windows") return ["rundll32", "url.dll,FileProtocolHandler", url];
  return ["xdg-open", url];
}
