/**
 * Real servers for tests of clusters: nats-server, one node or three, and Postgres, each on free
 * ports with its data in a temporary directory, ended with the test.
 *
 * nats-server comes from `go install`, once, into the user's cache; without Go, an installed one
 * does for calls (`NATS_SERVER` names another). Postgres is the distribution's, run as an
 * unprivileged user, since it refuses to run as root. What is missing is printed, and its tests are
 * skipped, unless `NATS_REQUIRED=1` says that they have to run.
 *
 * @module
 */
import { until } from "../fakes/until.ts";

/** The version that is installed; what it promises is in docs/explanation/reliability.md. */
const NATS_VERSION = "v2.15.2";
const HOST = "127.0.0.1";
/** A user that owns nothing, on every Linux. */
const UNPRIVILEGED_ID = 65534;

/** One node of NATS. */
export interface NatsNode {
  readonly url: string;
  /** Of its process; of the last one while it does not run. */
  readonly pid: number;
  readonly port: number;
  /** Where it answers `/jsz`. */
  readonly monitor: string;
  /** Ends it at once, without a chance to write anything. */
  kill(): Promise<void>;
  /** Stops its process until {@linkcode NatsNode.resume}, as a machine that hangs. */
  freeze(): void;
  /** Ends {@linkcode NatsNode.freeze}. */
  resume(): void;
  /** Starts it again with the data it had, and waits until it is healthy. */
  start(): Promise<void>;
}

/** One nats-server, or a cluster of three. */
export interface Nats extends AsyncDisposable {
  readonly urls: readonly string[];
  readonly monitors: readonly string[];
  readonly nodes: readonly NatsNode[];
}

/** How to start NATS. */
export interface NatsOptions {
  /** Default: 1. */
  readonly count?: 1 | 3;
  /** `always`, the default: what is acknowledged is on the disk. */
  readonly sync?: "always" | "default";
  /** Default: with JetStream. */
  readonly jetstream?: boolean;
  /** Further lines of its configuration, such as `authorization { … }`. */
  readonly more?: string;
}

/** One Postgres. */
export interface Postgres extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  /** Ends it at once, all its processes included. */
  kill(): Promise<void>;
  /** Starts it again with the data it had, and waits until it answers. */
  start(): Promise<void>;
}

const isRequired = Deno.env.get("NATS_REQUIRED") === "1";
const running = new Set<number>();
globalThis.addEventListener("unload", () => {
  for (const pid of running) signal(pid, "SIGKILL");
});

const natsProgram = await findNats();
const postgresFolder = await findPostgres();

/** Whether tests that need JetStream are skipped; printed with the reason. */
export const withoutNats = isMissing("nats-server of at least 2.10.23, or Go", natsProgram);
/** Whether tests that need Postgres are skipped; printed with the reason. */
export const withoutPostgres = isMissing("Postgres", postgresFolder);

function isMissing(what: string, found: string | undefined): boolean {
  if (found !== undefined || isRequired) return false;
  console.log(`left out: tests of clusters that need ${what}`);
  return true;
}

/** Starts NATS; it is ready when this resolves. */
export async function startNats(options: NatsOptions = {}): Promise<Nats> {
  if (natsProgram === undefined) throw new Error("There is neither nats-server nor Go");
  const { count = 1, sync = "always", jetstream = true, more = "" } = options;
  const directory = await Deno.makeTempDir({ prefix: "nats-" });
  const ports = freePorts(3 * count);
  const routes = ports.slice(count, 2 * count).map((port) => `nats-route://${HOST}:${port}`);
  const nodes = await Promise.all(Array.from({ length: count }, async (_, i) => {
    const [port, route, monitor] = [ports[i]!, ports[count + i]!, ports[2 * count + i]!];
    const store = `jetstream { store_dir: "${directory}/${i}", max_file_store: 4GB, ` +
      `max_memory_store: 64MB${sync === "always" ? ", sync_interval: always" : ""} }`;
    // Without advertising, clients know only what the test gives them: perhaps a proxy.
    const cluster = `cluster { name: c, listen: "${HOST}:${route}", no_advertise: true, ` +
      `routes: [${routes.join(", ")}] }`;
    const config = `${directory}/${i}.conf`;
    await Deno.writeTextFile(
      config,
      `server_name: n${i}\nlisten: "${HOST}:${port}"\nhttp: "${HOST}:${monitor}"\n` +
        `${jetstream ? store : ""}\n${count > 1 ? cluster : ""}\n${more}\n`,
    );
    const args = ["-c", config, "-l", `${directory}/${i}.log`];
    return natsNode({ port, monitor, args, isHealthy: () => healthy(monitor, jetstream, count) });
  }));
  await Promise.all(nodes.map((node) => node.start()));
  return {
    urls: nodes.map(({ url }) => url),
    monitors: nodes.map(({ monitor }) => monitor),
    nodes,
    async [Symbol.asyncDispose]() {
      await Promise.all(nodes.map((node) => node.kill()));
      await Deno.remove(directory, { recursive: true });
    },
  };
}

interface NodeSetup {
  readonly port: number;
  readonly monitor: number;
  readonly args: string[];
  isHealthy(): Promise<boolean>;
}

function natsNode({ port, monitor, args, isHealthy }: NodeSetup): NatsNode {
  let child: Deno.ChildProcess | undefined;
  let pid = 0;
  return {
    get pid() {
      return pid;
    },
    url: `nats://${HOST}:${port}`,
    port,
    monitor: `http://${HOST}:${monitor}`,
    async kill() {
      if (!child) return;
      signal(child.pid, "SIGKILL");
      await child.status;
      running.delete(child.pid);
      child = undefined;
    },
    freeze: () => signal(child!.pid, "SIGSTOP"),
    resume: () => signal(child!.pid, "SIGCONT"),
    async start() {
      child = new Deno.Command(natsProgram!, { args, stdout: "null", stderr: "null" }).spawn();
      pid = child.pid;
      running.add(pid);
      await until(isHealthy, `nats-server ${args.join(" ")} is not healthy`);
    },
  };
}

/** What nats-server says of a configuration; nothing is started. */
export async function checkNats(config: string, env: Record<string, string>): Promise<string> {
  const args = ["-t", "-c", config];
  const options = { args, env, clearEnv: true, stdin: "null" } as const;
  const { stdout, stderr } = await new Deno.Command(natsProgram!, options).output();
  const decoder = new TextDecoder();
  return decoder.decode(stdout) + decoder.decode(stderr);
}

/** A node says so itself: JetStream is there and, in a cluster, has a leader. */
async function healthy(port: number, jetstream: boolean, count: number): Promise<boolean> {
  const health = await fetch(`http://${HOST}:${port}/healthz`);
  await health.body?.cancel();
  if (!health.ok || !jetstream || count === 1) return health.ok;
  const { meta_cluster } = await (await fetch(`http://${HOST}:${port}/jsz`)).json();
  return meta_cluster?.leader !== undefined && meta_cluster.leader !== "";
}

/** Starts Postgres with the durability it has by default; `settings` change others. */
export async function startPostgres(settings: readonly string[] = []): Promise<Postgres> {
  if (postgresFolder === undefined) throw new Error("Postgres is not installed");
  const directory = await Deno.makeTempDir({ prefix: "postgres-" });
  const user = await unprivileged();
  if (user.uid !== undefined) await Deno.chown(directory, user.uid, user.gid ?? null);
  const data = `${directory}/data`;
  await run(`${postgresFolder}/initdb`, user, [
    ...["-D", data, "-U", "engine", "--auth=trust", "--no-sync", "--encoding=UTF8"],
    "--locale=C",
  ]);
  const [port] = freePorts(1);
  const args = ["-D", data, "-p", `${port}`, "-h", HOST];
  for (const setting of ["unix_socket_directories=", ...settings]) args.push("-c", setting);
  let child: Deno.ChildProcess | undefined;
  const kill = async (): Promise<void> => {
    if (!child) return;
    // Its other processes end when they notice, which `start` waits for.
    signal(child.pid, "SIGKILL");
    await child.status;
    running.delete(child.pid);
    child = undefined;
  };
  const start = (): Promise<void> =>
    until(async () => {
      if (!child) {
        const options = { args, ...user, cwd: directory, stdout: "null", stderr: "null" } as const;
        child = new Deno.Command(`${postgresFolder}/postgres`, options).spawn();
        running.add(child.pid);
      }
      const { success } = await output(`${postgresFolder}/pg_isready`, {
        args: ["-h", HOST, "-p", `${port}`, "-t", "1"],
      });
      if (success) return true;
      const { pid, status } = child;
      const ended = await Promise.race([status.then(() => true), Promise.resolve(false)]);
      if (!ended) return false;
      running.delete(pid);
      child = undefined; // Processes of the one before still held its memory.
      return false;
    }, "Postgres does not answer");
  await start();
  return {
    url: `postgres://engine@${HOST}:${port}/postgres`,
    port: port!,
    kill,
    start,
    async [Symbol.asyncDispose]() {
      await kill();
      // Processes that just noticed may still write.
      await until(() => Deno.remove(directory, { recursive: true }).then(() => true));
    },
  };
}

/** The user that Postgres runs as; none: it runs as this one. */
async function unprivileged(): Promise<{ uid?: number; gid?: number }> {
  if (Deno.uid() !== 0) return {};
  // Debian's package brings the first one; any user does.
  const [user, group] = await Promise.all(["-u", "-g"].map((flag) => {
    return output("id", { args: [flag, "postgres"] });
  }));
  if (!user!.success) return { uid: UNPRIVILEGED_ID, gid: UNPRIVILEGED_ID };
  return { uid: Number(user!.text), gid: Number(group!.text) };
}

async function findNats(): Promise<string | undefined> {
  const named = Deno.env.get("NATS_SERVER");
  if (named !== undefined) return named;
  const cache = Deno.env.get("XDG_CACHE_HOME") ?? `${Deno.env.get("HOME") ?? "/tmp"}/.cache`;
  const folder = `${cache}/engine-ci/nats-server-${NATS_VERSION}`;
  const program = `${folder}/nats-server`;
  if ((await output(program, { args: ["--version"] })).success) return program;
  if (isRequired && (await output("go", { args: ["version"] })).success) {
    await run("go", {}, ["install", `github.com/nats-io/nats-server/v2@${NATS_VERSION}`], {
      GOBIN: folder,
    });
    return program;
  }
  const { success, text } = await output("nats-server", { args: ["--version"] });
  return success && hasSync(text) ? "nats-server" : undefined;
}

/** Whether a version, such as `nats-server: v2.10.23`, can sync always. */
function hasSync(version: string): boolean {
  const [, major, minor, patch] = /v?(\d+)\.(\d+)\.(\d+)/.exec(version) ?? [];
  const [have, need] = [[major, minor, patch].map(Number), [2, 10, 23]];
  const at = have.findIndex((part, i) => part !== need[i]);
  return at === -1 || have[at]! > need[at]!;
}

async function findPostgres(): Promise<string | undefined> {
  const folders: string[] = [];
  for (const root of ["/usr/lib/postgresql", "/usr/pgsql"]) {
    try {
      for await (const { name } of Deno.readDir(root)) folders.push(`${root}/${name}/bin`);
    } catch {
      // Not on this system.
    }
  }
  folders.sort((a, b) => b.localeCompare(a, "en", { numeric: true }));
  for (const folder of folders) {
    if ((await output(`${folder}/postgres`, { args: ["--version"] })).success) return folder;
  }
  return undefined;
}

/** Ports that nothing uses now. */
export function freePorts(count: number): number[] {
  const held = Array.from({ length: count }, () => Deno.listen({ hostname: HOST, port: 0 }));
  const ports = held.map(({ addr }) => addr.port);
  for (const listener of held) listener.close();
  return ports;
}

function signal(pid: number, name: Deno.Signal): void {
  try {
    Deno.kill(pid, name);
  } catch {
    // It has ended.
  }
}

async function run(
  program: string,
  user: { uid?: number; gid?: number },
  args: string[],
  env: Record<string, string> = {},
): Promise<void> {
  const { success, text } = await output(program, { args, ...user, env, cwd: "/" });
  if (!success) throw new Error(`${program} ${args.join(" ")} failed: ${text}`);
}

async function output(
  program: string,
  options: Deno.CommandOptions,
): Promise<{ success: boolean; text: string }> {
  try {
    const { success, stdout, stderr } = await new Deno.Command(program, options).output();
    const decoder = new TextDecoder();
    return { success, text: decoder.decode(stdout) + (success ? "" : decoder.decode(stderr)) };
  } catch {
    return { success: false, text: "" }; // There is no such program.
  }
}
