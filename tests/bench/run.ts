/**
 * `deno task bench`: what the engine costs beside what it is built on, all in one run.
 *
 * Each question has a ceiling that is measured in turn with it, round by round, so that a machine
 * that is busy disturbs both alike. Expected: a call is two hops, so at best half the echo rate of
 * Deno's WebSocket; state sets share commits, so many at once are far cheaper than one by one; an
 * HTTP request to a worker is a request and a call. Needs Linux and gcc; takes about two minutes.
 * Progress goes to standard error, the tables (Markdown) to standard output.
 *
 * @module
 */
import { count, duration, medians, ratio, share, table } from "./figures.ts";
import { buildLoad, type Figures, type Run, runLoad } from "./load.ts";
import { type Server, startEcho, startEngine, startHono } from "./servers.ts";

const ROUNDS = 5;
const SECONDS = 1;
const WINDOWS = [1, 64, 1_024];
const SIZES = [100, 10_240];
const CONNECTIONS = 64;
/** What is expected, see the header. */
const TARGETS = { relay: 0.8, state: 8, http: 0.35 };

type Measure = (run: Run) => Promise<Figures>;

/** Two runs in turn, round by round. */
async function inTurn(measure: Measure, a: Run, b: Run): Promise<[Figures[], Figures[]]> {
  const found: [Figures[], Figures[]] = [[], []];
  for (let round = 0; round < ROUNDS; round++) {
    found[0].push(await measure(a));
    found[1].push(await measure(b));
  }
  return found;
}

async function calls(measure: Measure, engine: Server, echo: Server): Promise<string> {
  const rows: string[][] = [];
  for (const bytes of SIZES) {
    for (const window of WINDOWS) {
      console.error(`calls: ${window} in flight, ${bytes} B`);
      const common = { window, bytes };
      const [echoes, relays] = await inTurn(
        measure,
        { mode: "echo", port: echo.ports[0]!, pid: echo.pid, ...common },
        { mode: "relay", port: engine.ports[0]!, pid: engine.pid, ...common },
      );
      const { rate, p50_us, p99_us, cpu_s } = medians(relays);
      const half = 2 * ratio(relays, echoes);
      rows.push([
        `${bytes >= 1_024 ? `${bytes / 1_024} KiB` : `${bytes} B`}, ${window} in flight`,
        count(rate),
        duration(p50_us),
        duration(p99_us),
        `${cpu_s.toFixed(2)} s`,
        count(medians(echoes).rate),
        window === 64 ? share(half, TARGETS.relay) : `${Math.round(half * 100)} %`,
      ]);
    }
  }
  const head = ["call of a worker", "calls/s", "p50", "p99", "CPU per 100,000", "echoes/s"];
  return table([...head, "of half the echo rate"], rows);
}

async function state(measure: Measure, engine: Server): Promise<string> {
  console.error("state::set");
  const run = { mode: "state", port: engine.ports[0]!, pid: engine.pid, bytes: 100 } as const;
  const [single, many] = await inTurn(measure, run, { ...run, window: 1_024 });
  const times = ratio(many, single);
  return table(["state::set, 100 B", "sets/s", "p50", "p99", "times the rate of one by one"], [
    ["one by one", ...speed(medians(single)), ""],
    ["1,024 in flight", ...speed(medians(many)), `${times.toFixed(1)} (≥ ${TARGETS.state})`],
  ]);
}

async function http(measure: Measure, engine: Server, hono: Server): Promise<string> {
  console.error("HTTP");
  const common = { mode: "http", connections: CONNECTIONS, bytes: 100 } as const;
  const [enginePort, port] = engine.ports;
  const [bare, through] = await inTurn(
    measure,
    { port: hono.ports[0]!, pid: hono.pid, ...common },
    { port: port!, enginePort: enginePort!, pid: engine.pid, ...common },
  );
  const part = share(ratio(through, bare), TARGETS.http);
  const head = [`POST of 100 B JSON, ${CONNECTIONS} connections`, "requests/s", "p50", "p99"];
  return table([...head, "of bare hono"], [
    ["hono alone", ...speed(medians(bare)), ""],
    ["HTTP trigger to a worker", ...speed(medians(through)), part],
  ]);
}

function speed({ rate, p50_us, p99_us }: Figures): string[] {
  return [count(rate), duration(p50_us), duration(p99_us)];
}

async function machine(): Promise<string> {
  const info = await Deno.readTextFile("/proc/cpuinfo");
  const model = /model name\s*: (.*)/.exec(info)?.[1] ?? Deno.build.arch;
  const cores = navigator.hardwareConcurrency;
  const memory = Math.round(Deno.systemMemoryInfo().total / 2 ** 30);
  const day = new Date().toISOString().slice(0, 10);
  return `${day}, Deno ${Deno.version.deno}, ${cores} cores (${model.trim()}), ${memory} GiB, ` +
    `${Deno.build.os}. Medians of ${ROUNDS} rounds of ${SECONDS} s; ` +
    "load generator and workers on the same cores.";
}

async function main(): Promise<void> {
  const directory = await Deno.makeTempDir();
  try {
    const load = await buildLoad(directory);
    const measure: Measure = (run) => runLoad(load, run, SECONDS);
    await using echo = await startEcho();
    await using hono = await startHono();
    await using engine = await startEngine(directory);

    const tables = [
      await calls(measure, engine, echo),
      await state(measure, engine),
      await http(measure, engine, hono),
    ];
    console.log([await machine(), ...tables].join("\n\n"));
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
}

if (Deno.build.os !== "linux") {
  console.error("The load generator needs Linux");
  Deno.exit(2);
}
await main();
