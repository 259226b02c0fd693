/**
 * `deno task torture`: attacks a real engine and prints what held.
 *
 * `deno task torture NAME…` runs scenarios by name, `--only WORD` sections of them. Exit code 1 if
 * a bound was broken, 2 for invalid options.
 *
 * @module
 */
import { parseArgs } from "node:util";
import { Campaign, type Scenario } from "./campaign.ts";
import { killEngines } from "./engine.ts";
import { headOf } from "./report.ts";
import { SCENARIOS } from "./scenarios/mod.ts";

const USAGE = `deno task torture [options] [SCENARIO…]
  --seed N       repeats a run's choices (default: random, printed)
  --minutes N    length of the soak (3)
  --only WORD    sections whose name contains WORD; may be repeated
  --short        the form that the gate runs
  --tree DIR     attacks the engine of another checkout (this one)

scenarios:
${SCENARIOS.map(({ name, summary }) => `  ${name.padEnd(14)} ${summary}`).join("\n")}`;
const HERE = new URL("../../", import.meta.url).pathname;
const SEED_MAX = 2 ** 31;
const MINUTES_MAX = 24 * 60;

/** Invalid options; the message says what to write instead. */
class UsageError extends Error {
  override readonly name = "UsageError";
}

for (const signal of ["SIGINT", "SIGTERM"] as const) {
  Deno.addSignalListener(signal, () => {
    killEngines();
    Deno.exit(130);
  });
}
try {
  Deno.exit(await main(Deno.args));
} catch (error) {
  if (!(error instanceof UsageError)) throw error;
  console.error(`${error.message}\n\n${USAGE}`);
  Deno.exit(2);
}

async function main(args: readonly string[]): Promise<number> {
  const { values, positionals } = parse(args);
  if (values.help) {
    console.log(USAGE);
    return 0;
  }
  const scenarios = positionals.length === 0 ? SCENARIOS : positionals.map(find);
  const options = {
    seed: whole("--seed", values.seed ?? `${Math.floor(Math.random() * SEED_MAX)}`, SEED_MAX),
    minutes: whole("--minutes", values.minutes, MINUTES_MAX),
    isShort: values.short,
    sections: values.only,
    except: [],
    tree: values.tree.endsWith("/") ? values.tree : `${values.tree}/`,
  };
  console.log(`seed ${options.seed}, Deno ${Deno.version.deno}, engine of ${options.tree}`);
  console.log(headOf());
  const campaign = new Campaign(options, (line) => console.log(line));
  for (const scenario of scenarios) await run(scenario, campaign);
  const broken = campaign.rows.filter((row) => row.broken.length > 0);
  const passed = campaign.rows.length - broken.length;
  console.log(`\n${passed} rows passed, ${broken.length} broken; seed ${options.seed}`);
  return broken.length > 0 ? 1 : 0;
}

/** A scenario that fails as a whole is a row, and the others run. */
async function run(scenario: Scenario, campaign: Campaign): Promise<void> {
  const start = performance.now();
  try {
    await scenario.run(campaign);
  } catch (error) {
    const seconds = (performance.now() - start) / 1_000;
    const text = error instanceof Error ? error.stack ?? error.message : String(error);
    campaign.add({ scenario: scenario.name, done: "it failed", broken: [text], seconds });
  }
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        seed: { type: "string" },
        minutes: { type: "string", default: "3" },
        only: { type: "string", multiple: true, default: [] },
        short: { type: "boolean", default: false },
        tree: { type: "string", default: HERE },
        help: { type: "boolean", default: false },
      },
    });
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

function find(word: string): Scenario {
  const scenario = SCENARIOS.find(({ name }) => name === word);
  if (scenario) return scenario;
  throw new UsageError(`There is no scenario ${JSON.stringify(word)}`);
}

function whole(name: string, word: string, max: number): number {
  const value = Number(word);
  if (word.trim() !== "" && Number.isInteger(value) && value >= 0 && value <= max) return value;
  throw new UsageError(`${name} has to be a whole number from 0 to ${max}, not ${word}`);
}
