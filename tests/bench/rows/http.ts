/**
 * What an HTTP request to a worker costs beside the same request to bare hono, and beside many
 * other routes.
 *
 * Expected: a request and a call, so about half of bare hono; flat in the number of
 * routes, since they are in a trie.
 *
 * @module
 */
import type { Bench, Section } from "../bench.ts";
import { count, duration, medians, percent, ratio, table } from "../figures.ts";
import { type Server, startEngine, startHono } from "../servers.ts";

/** The section. */
export const http: Section = { name: "http", measure };

const CONNECTIONS = 64;
const ROUTES = 1_000;
/** Each of them first, bare hono too. */
const WARM_UP_S = 3;
/** Least part of bare hono's rate, and without traces. */
const SHARE = 0.5;
const SHARE_UNTRACED = 0.6;
/** Most that a request among many routes costs beside one among its own. */
const ROUTES_COST = 1.1;

async function measure(bench: Bench): Promise<void> {
  const { tree } = bench.options;
  await using hono = await startHono();
  await using engine = await startEngine({ tree, transport: "raw" });
  await using untraced = await startEngine({ tree, transport: "raw", traces: false });
  await using crowded = await startEngine({ tree, transport: "raw" });
  const common = { mode: "http", connections: CONNECTIONS, bytes: 100 } as const;
  const through = ({ pid, ports: [enginePort, port] }: Server, routes = 0) =>
    ({ ...common, port: port!, enginePort: enginePort!, pid, routes }) as const;
  const servers = {
    "bare hono": { ...common, port: hono.ports[0]!, pid: hono.pid },
    "to a worker": through(engine),
    "to a worker, no traces": through(untraced),
    "to a worker, 1,000 other routes": through(crowded, ROUTES),
  };
  await bench.warmUp(Object.values(servers), WARM_UP_S);
  const found = await bench.loadAlternately(`POST of 100 B, ${CONNECTIONS} connections`, servers);
  const part = (rounds: typeof found[keyof typeof found]) =>
    ratio(rounds, found["bare hono"], "rate");
  bench.find({
    name: "rate to a worker over bare hono",
    value: part(found["to a worker"]),
    unit: "share",
    better: "more",
    target: SHARE,
  });
  bench.find({
    name: "rate to a worker over bare hono, no traces",
    value: part(found["to a worker, no traces"]),
    unit: "share",
    better: "more",
    target: SHARE_UNTRACED,
  });
  bench.find({
    name: "server CPU of a request to a worker over bare hono",
    value: ratio(found["to a worker"], found["bare hono"], "cpu_s"),
    unit: "times",
    better: "less",
  });
  bench.find({
    name: "engine CPU of a request among 1,000 routes over one alone",
    value: ratio(found["to a worker, 1,000 other routes"], found["to a worker"], "cpu_s"),
    unit: "times",
    better: "less",
    target: ROUTES_COST,
  });
  const rows = Object.entries(found).map(([name, rounds]) => {
    const { rate, p50_us, p99_us, cpu_s } = medians(rounds);
    const cpu = `${cpu_s.toFixed(2)} s`;
    return [name, count(rate), duration(p50_us), duration(p99_us), cpu, percent(part(rounds))];
  });
  const head = ["POST of 100 B JSON", "requests/s", "p50", "p99", "server CPU per 100,000"];
  const note = `Each server was loaded for ${WARM_UP_S} s before.`;
  bench.show(`HTTP, ${CONNECTIONS} connections`, table([...head, "of bare hono"], rows), note);
}
