/**
 * Starts the programs of this folder: other ways to ask a function in another process.
 *
 * They run on Node, for which their packages are written. The packages are put into the user's
 * cache by npm, exactly as `packages.json` names them; none is a dependency of the engine.
 *
 * @module
 */
import { Missing } from "../bench.ts";
import { type Program, startProgram } from "../program.ts";
import { makeTrio, type Trio } from "../rows/trios.ts";

const HERE = new URL(".//", import.meta.url);
const READY = [/^(ready)$/m];
const LISTENING = [/listening on (\d+)/];
/** Where Debian puts it; not every PATH has that directory. */
const NATS_SERVERS = ["nats-server", "/usr/sbin/nats-server"];

/** Makes the programs ready and returns their directory. @throws {Missing} Without Node or npm. */
export async function installPeers(): Promise<string> {
  const packages = await Deno.readTextFile(new URL("packages.json", HERE));
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(packages));
  const name = new Uint8Array(digest).toHex().slice(0, 16);
  const cache = Deno.env.get("XDG_CACHE_HOME") ?? `${Deno.env.get("HOME")}/.cache`;
  const directory = `${cache}/engine-bench/${name}`;
  await Deno.mkdir(directory, { recursive: true });
  for await (const { name } of Deno.readDir(HERE)) {
    if (name.endsWith(".mjs")) await Deno.copyFile(new URL(name, HERE), `${directory}/${name}`);
  }
  const done = `${directory}/installed`;
  if (await isThere(done)) return directory;
  await Deno.writeTextFile(`${directory}/package.json`, packages);
  await install(directory);
  await Deno.writeTextFile(done, "");
  return directory;
}

/** NATS: Debian's server, and its client at both ends. */
export async function startNats(directory: string): Promise<Trio> {
  await using stack = new AsyncDisposableStack();
  const server = stack.use(await startNatsServer());
  const [responder, requester] = await startEnds(directory, "nats.mjs", server.found, stack);
  return await makeTrio({ requester, responder, broker: server.pid }, stack);
}

/** Moleculer: the two talk to each other directly. */
export async function startMoleculer(directory: string): Promise<Trio> {
  await using stack = new AsyncDisposableStack();
  const ports = [freePort(), freePort()].map(String);
  const [responder, requester] = await startEnds(directory, "moleculer.mjs", ports, stack);
  return await makeTrio({ requester, responder }, stack);
}

/** One with a broker of its own, such as `ws_router.mjs`. */
export async function startBrokered(directory: string, program: string): Promise<Trio> {
  await using stack = new AsyncDisposableStack();
  const broker = stack.use(
    await startProgram("node", [`${directory}/${program}`, "broker"], LISTENING),
  );
  const [responder, requester] = await startEnds(directory, program, broker.found, stack);
  return await makeTrio({ requester, responder, broker: broker.pid }, stack);
}

async function startEnds(
  directory: string,
  program: string,
  words: readonly string[],
  stack: AsyncDisposableStack,
): Promise<[Program, Program]> {
  const start = async (role: string): Promise<Program> => {
    const args = [`${directory}/${program}`, role, ...words];
    return stack.use(await startProgram("node", args, READY));
  };
  // Moleculer's responder is ready before there is a requester; the other way round it waits.
  const responder = await start("responder");
  return [responder, await start("requester")];
}

async function startNatsServer(): Promise<Program> {
  const words = ["--addr", "127.0.0.1", "--port", "-1"];
  for (const command of NATS_SERVERS) {
    try {
      return await startProgram(command, words, [/client connections on 127\.0\.0\.1:(\d+)/]);
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound)) throw error;
    }
  }
  throw new Missing("nats-server is not installed (Debian's package of that name)");
}

async function install(directory: string): Promise<void> {
  const args = ["install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts"];
  const command = new Deno.Command("npm", { args, cwd: directory, stdin: "null" });
  try {
    const { success, stderr } = await command.output();
    if (!success) throw new Missing(`npm install: ${new TextDecoder().decode(stderr).trim()}`);
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
    throw new Missing("the peers need Node and npm");
  }
}

async function isThere(path: string): Promise<boolean> {
  return await Deno.stat(path).then(() => true, () => false);
}

/** A port that was free just now. */
export function freePort(): number {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  return listener.addr.port;
}
