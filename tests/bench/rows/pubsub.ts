/**
 * What a message to 1,000 subscribers costs, when they are functions of few workers and when each
 * is a connection of its own.
 *
 * Expected: the payload is encoded once, and each delivery is a call with its result, so a few
 * microseconds; with a connection for each, a write and a read of a socket for every few of them
 * as well, which cost several times that.
 *
 * @module
 */
import type { Bench, Section } from "../bench.ts";
import { count, median, table } from "../figures.ts";
import { startProgram } from "../program.ts";
import { startEngine } from "../servers.ts";
import type { SubscribersAnswer, SubscribersOrder } from "../subscribers.ts";
import { cpuSeconds } from "./trios.ts";

/** The section. */
export const pubsub: Section = { name: "pubsub", measure };

const SUBSCRIBERS = new URL("../subscribers.ts", import.meta.url).pathname;
/** Most CPU of the engine for a delivery: 200,000 a second. */
const DELIVERY_US = 5;
const SECONDS = 2;
/** Connecting 1,000 subscribers takes longer than measuring them. */
const ROUNDS = 3;

/** Deliveries per second, and what the engine used for one. */
interface DeliveryFigures {
  readonly rate: number;
  readonly cpu_us: number;
}

async function measure(bench: Bench): Promise<void> {
  const { tree } = bench.options;
  const workers = ["engine-pubsub"];
  await using engine = await startEngine({ tree, transport: "raw", workers });
  await using untraced = await startEngine({ tree, transport: "raw", workers, traces: false });
  const few = { connections: 10, functions: 100, window: 4 };
  const many = { connections: 1_000, functions: 1, window: 4 };
  const found = await bench.alternately("messages of 100 B to 1,000 subscribers", {
    "10 workers with 100 functions": () => deliver(engine, few),
    "10 workers with 100 functions, no traces": () => deliver(untraced, few),
    "1,000 workers": () => deliver(engine, many),
  }, ROUNDS);
  bench.find({
    name: "engine CPU of a delivery to functions of 10 workers",
    value: median(found["10 workers with 100 functions"].map(({ cpu_us }) => cpu_us)),
    unit: "µs",
    better: "less",
    target: DELIVERY_US,
  });
  const rows = Object.entries(found).map(([name, rounds]) => {
    const cpu = median(rounds.map(({ cpu_us }) => cpu_us));
    return [name, count(median(rounds.map(({ rate }) => rate))), `${cpu.toFixed(1)} µs`];
  });
  const head = ["1,000 subscribers, 100 B", "deliveries/s", "engine CPU per delivery"];
  const note =
    "Four publishes in flight. Every delivery is answered, and all subscribers and the " +
    "publisher are one process beside the engine, on the same cores. No message was dropped.";
  bench.show("Pub/sub", table(head, rows), note);
}

/** Publishes for a while; fails when a message did not arrive. */
async function deliver(
  { pid, ports }: { readonly pid: number; readonly ports: readonly number[] },
  shape: Pick<SubscribersOrder, "connections" | "functions" | "window">,
): Promise<DeliveryFigures> {
  const order: SubscribersOrder = { ...shape, port: ports[0]!, bytes: 100, seconds: SECONDS };
  const args = ["run", "-A", "--no-check", SUBSCRIBERS, JSON.stringify(order)];
  await using program = await startProgram(Deno.execPath(), args, [/(ready)/]);
  const before = cpuSeconds(pid);
  const answer: SubscribersAnswer = JSON.parse(await program.ask("begin"));
  const { published, delivered, seconds } = answer;
  const missing = published * shape.connections * shape.functions - delivered;
  if (missing !== 0) throw new Error(`${missing} of ${published} messages did not arrive`);
  const cpu_us = (cpuSeconds(pid) - before) / delivered * 1e6;
  return { rate: delivered / seconds, cpu_us };
}
