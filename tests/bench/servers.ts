/**
 * What is measured, each in a process of its own: engines, and the ceilings beside them.
 *
 * @module
 */
import { type Program, startProgram } from "./program.ts";

const HERE = new URL(".//", import.meta.url).pathname;
const LISTENING = [/listening on (\d+)/];

/** A server that listens. */
export interface Server extends AsyncDisposable {
  readonly pid: number;
  readonly ports: readonly number[];
}

/** How an engine is to be. */
export interface EngineSetup {
  /** The checkout it is of, with a slash at its end. */
  readonly tree: string;
  readonly transport: "raw" | "deno-serve";
  /** Default, as in any engine: `true`. */
  readonly traces?: boolean;
  /** Built-in workers besides state and HTTP. Default: none. */
  readonly workers?: readonly string[];
  /** Of the state. Default: `always`. */
  readonly durability?: "always" | "interval";
  /** Addresses of NATS that join it with other engines. Default: it is alone. */
  readonly nats?: readonly string[];
}

/** A transport of the engine that sends everything back. */
export function startEcho(transport: EngineSetup["transport"]): Promise<Server> {
  return start([`${HERE}echo_server.ts`, transport], LISTENING);
}

/** A route of hono, and nothing else. */
export function startHono(): Promise<Server> {
  return start([`${HERE}hono_server.ts`], LISTENING);
}

/** A router that records calls, or not: see `traced_router.ts`. */
export function startTraced(mode: "bare" | "off" | "on"): Promise<Server> {
  return start([`${HERE}traced_router.ts`, mode], LISTENING);
}

/** An engine with state and HTTP and a directory of its own. Ports: workers, HTTP. */
export async function startEngine(setup: EngineSetup): Promise<Server> {
  const { tree, transport, traces, workers = [], durability, nats } = setup;
  const cluster = nats === undefined
    ? ""
    : `  cluster: { name: bench, nats: ${JSON.stringify(nats)}, log: none }\n`;
  const directory = await Deno.makeTempDir({ prefix: "engine-bench-" });
  const remove = () => Deno.remove(directory, { recursive: true });
  const observability = `  - name: engine-observability
    config:
      traces:
        enabled: false
`;
  await Deno.writeTextFile(
    `${directory}/config.yaml`,
    `engine:
  port: 0
  transport: ${transport}
${cluster}log:
  level: warn
workers:
  - name: engine-state
${
      durability === undefined
        ? ""
        : `    config: { durability: ${durability} }\n`
    }  - name: engine-http
    config:
      port: 0
${workers.map((name) => `  - name: ${name}\n`).join("")}${traces === false ? observability : ""}`,
  );
  try {
    const patterns = [/ws:\/\/127\.0\.0\.1:(\d+)/, /http:\/\/127\.0\.0\.1:(\d+)/];
    const words = [`${tree}cli/main.ts`, "--config", `${directory}/config.yaml`];
    const server = await start(words, patterns);
    return {
      ...server,
      async [Symbol.asyncDispose]() {
        await server[Symbol.asyncDispose]();
        await remove();
      },
    };
  } catch (error) {
    await remove();
    throw error;
  }
}

async function start(words: readonly string[], patterns: readonly RegExp[]): Promise<Server> {
  const args = ["run", "-A", "--no-check", ...words];
  const program: Program = await startProgram(Deno.execPath(), args, patterns);
  return {
    pid: program.pid,
    ports: program.found.map(Number),
    [Symbol.asyncDispose]: () => program[Symbol.asyncDispose](),
  };
}
