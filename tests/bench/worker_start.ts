/**
 * `deno run -A tests/bench/worker_start.ts [rounds]`: how long a person waits for a worker.
 *
 * Runs the workers of the quickstart on a real engine, as processes and, where microVMs can be
 * had, in those: from `engine worker add` to ready with nothing installed and with everything
 * installed, from saving a file to the first answer of the new version, and what an idle one holds
 * in memory. Prints medians as a Markdown table. Anything else that runs on the machine shows.
 *
 * @module
 */
import { InvocationError } from "../../mod.ts";
import { EngineProcess } from "../fakes/engine_process.ts";
import { vmHere } from "../fakes/vm_project.ts";
import { median, table } from "./figures.ts";
import { until } from "../fakes/until.ts";

const ROUNDS = Number(Deno.args[0] ?? 3);
/** A machine that is kept for its worker is gone after this. */
const FORGOTTEN_MS = 12_000;
/** What a worker held in memory while it started has been given back by then. */
const IDLE_MS = 15_000;
const LIMIT = "900s";

/** One of the two workers of the quickstart. */
interface Example {
  readonly name: string;
  readonly kind: string;
  readonly file: string;
  readonly function_id: string;
  /** Makes the source answer with another version; left out: it calls others and is not asked. */
  readonly edit?: (source: string, version: number) => string;
}

const EXAMPLES: readonly Example[] = [
  {
    name: "math-worker",
    kind: "Python, pip",
    file: "math_worker.py",
    function_id: "math::add",
    edit: (source, version) =>
      source.replace(/result = \{("v": \d+, )?/, `result = {"v": ${version}, `),
  },
  {
    name: "caller-worker",
    kind: "TypeScript, Deno",
    file: "worker.ts",
    function_id: "math::add_two_numbers",
  },
];

/** Each edit makes another one. */
let versions = 0;

/** Seconds, and bytes. */
interface Figures {
  readonly cold: number[];
  readonly warm: number[];
  readonly reload: number[];
  readonly memory: number[];
}

async function measure(
  engine: EngineProcess,
  example: Example,
  isolation: string,
): Promise<{ figures: Figures; accelerator: string }> {
  const figures: Figures = { cold: [], warm: [], reload: [], memory: [] };
  let accelerator = "";
  for (let round = 1; round <= ROUNDS; round++) {
    console.error(`${example.name}, ${isolation}, round ${round}`);
    await Deno.remove(`${engine.directory}/.engine/deps`, { recursive: true }).catch(() => {});
    figures.cold.push(await add(engine, example, isolation));
    await run(engine, "worker", "remove", example.name);
    await wait(FORGOTTEN_MS);
    figures.warm.push(await add(engine, example, isolation));
    if (example.edit) figures.reload.push(await reload(engine, example, example.edit, ++versions));
    await wait(IDLE_MS);
    const status = JSON.parse(await run(engine, "worker", "status", example.name, "--json"));
    figures.memory.push(status.memory_bytes);
    accelerator = status.accelerator ?? "";
    await run(engine, "worker", "remove", example.name);
    await wait(FORGOTTEN_MS);
  }
  return { figures, accelerator };
}

/** Seconds from the command to ready. */
async function add(engine: EngineProcess, { name }: Example, isolation: string): Promise<number> {
  const began = performance.now();
  const words = ["--isolation", isolation, "--timeout", LIMIT];
  await run(engine, "worker", "add", `./workers/${name}`, ...words);
  return (performance.now() - began) / 1_000;
}

/** Seconds from saving to the first answer of the new version. */
async function reload(
  engine: EngineProcess,
  example: Example,
  edit: (source: string, version: number) => string,
  version: number,
): Promise<number> {
  const path = `${engine.directory}/workers/${example.name}/${example.file}`;
  await using worker = engine.connect();
  const source = await Deno.readTextFile(path);
  const began = performance.now();
  await Deno.writeTextFile(path, edit(source, version));
  await until(async () => {
    try {
      const answer = await worker.trigger<object, { v?: number }>({
        function_id: example.function_id,
        payload: { a: 1, b: 1 },
      });
      return answer.v === version;
    } catch (thrown) {
      if (thrown instanceof InvocationError) return false;
      throw thrown;
    }
  });
  return (performance.now() - began) / 1_000;
}

async function run(engine: EngineProcess, ...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await engine.command(...args);
  if (code !== 0) throw new Error(`engine ${args.join(" ")} ended with ${code}: ${stderr}`);
  return stdout;
}

function wait(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

function seconds(numbers: readonly number[]): string {
  return numbers.length === 0 ? "–" : `${median(numbers).toFixed(1)} s`;
}

const rows: string[][] = [];
await using engine = await EngineProcess.start();
await run(engine, "create", "--template", "quickstart", "--directory", "made");
await Deno.rename(`${engine.directory}/made/workers`, `${engine.directory}/workers`);
for (const isolation of ["process", ...typeof vmHere === "string" ? [] : ["microvm"]]) {
  for (const example of EXAMPLES) {
    const { figures, accelerator } = await measure(engine, example, isolation);
    const where = accelerator === "" ? isolation : `${isolation} (${accelerator})`;
    const memory = `${Math.round(median(figures.memory) / 2 ** 20)} MiB`;
    const { cold, warm, reload } = figures;
    rows.push([`${example.kind}, ${where}`, seconds(cold), seconds(warm), seconds(reload), memory]);
  }
}
const head = ["worker", "add, nothing installed", "add, installed", "save to new answer", "memory"];
console.log(table(head, rows));
