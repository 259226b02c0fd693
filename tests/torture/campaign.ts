/**
 * What scenarios share: options, chance, an engine with its canary, and the rows they report.
 *
 * A scenario runs in two forms. The long one is for `deno task torture` and keeps the bounds that
 * docs/explanation/reliability.md states; the short one is a test of the gate, with less of everything and
 * bounds that also hold on a machine that is busy.
 *
 * @module
 */
import { Random } from "../fakes/random.ts";
import { Canary, Engine, type EngineSetup } from "./engine.ts";
import { lineOf, type Row } from "./report.ts";

/** How a campaign is to run. */
export interface CampaignOptions {
  readonly seed: number;
  readonly isShort: boolean;
  /** Of the soak. */
  readonly minutes: number;
  /** Checkout of the engine, with a slash at its end. */
  readonly tree: string;
  /** Only sections whose name contains one of these words; none: all. */
  readonly sections: readonly string[];
  /** Sections whose name contains one of these words are left out. */
  readonly except: readonly string[];
}

/** A part of the campaign. */
export interface Scenario {
  readonly name: string;
  readonly summary: string;
  run(campaign: Campaign): Promise<void>;
}

/** What one attack is checked against. */
export interface Bounds {
  /** Longest wait of a call of the canary. */
  readonly maxMs?: number;
  readonly p99Ms?: number;
  readonly peakMib?: number;
}

/** In the gate, waits may be this many times longer than what the campaign allows. */
const SHORT_FACTOR = 10;

/** An engine and its canary. */
export interface Subject extends AsyncDisposable {
  readonly engine: Engine;
  readonly canary: Canary;
}

/** One run of scenarios. */
export class Campaign {
  readonly options: CampaignOptions;
  readonly random: Random;
  readonly rows: Row[] = [];
  readonly #print: (line: string) => void;

  constructor(options: CampaignOptions, print: (line: string) => void) {
    this.options = options;
    this.random = new Random(options.seed);
    this.#print = print;
  }

  get isShort(): boolean {
    return this.options.isShort;
  }

  /** Whether a section is to run. */
  wants(section: string): boolean {
    const { sections, except } = this.options;
    if (except.some((word) => section.includes(word))) return false;
    return sections.length === 0 || sections.some((word) => section.includes(word));
  }

  /** One of two values: for the gate, for the campaign. */
  choose<Value>(short: Value, long: Value): Value {
    return this.isShort ? short : long;
  }

  /** Starts an engine. */
  engine(setup: Omit<EngineSetup, "tree"> = {}): Promise<Engine> {
    return Engine.start({ tree: this.options.tree, ...setup });
  }

  /** Starts an engine and its canary. */
  async subject(setup: Omit<EngineSetup, "tree"> = {}): Promise<Subject> {
    const engine = await this.engine(setup);
    try {
      const canary = await Canary.start(engine);
      return {
        engine,
        canary,
        [Symbol.asyncDispose]: async () => {
          await canary[Symbol.asyncDispose]();
          await engine[Symbol.asyncDispose]();
        },
      };
    } catch (error) {
      await engine[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Adds a row and prints it. */
  add(row: Row): void {
    this.rows.push(row);
    this.#print(lineOf(row));
  }

  /**
   * Runs one attack against a subject and adds its row: `act` returns what was done and what else
   * was broken. The canary counts from its start to its end.
   */
  async attack(
    name: string,
    { engine, canary }: Subject,
    bounds: Bounds,
    act: () => Promise<{ done: string; broken?: readonly string[] }>,
  ): Promise<void> {
    await canary.reset();
    const start = performance.now();
    const broken: string[] = [];
    let done = "";
    try {
      const outcome = await act();
      done = outcome.done;
      broken.push(...outcome.broken ?? []);
    } catch (error) {
      broken.push(`the scenario failed: ${error}`);
    }
    const seconds = (performance.now() - start) / 1_000;
    const report = await canary.report();
    if (!engine.isAlive) broken.push(`the engine ended: ${lastLines(engine.output)}`);
    if (report.end !== null) broken.push(`the canary was cut: ${report.end}`);
    if (report.failed > 0) broken.push(`${report.failed} calls of the canary failed`);
    if (report.calls === 0) broken.push("no call of the canary ended");
    const factor = this.choose(SHORT_FACTOR, 1);
    const limits = [
      ["the canary waited", report.net_max_ms, bounds.maxMs && bounds.maxMs * factor, "ms"],
      ["the canary's p99 was", report.net_p99_ms, bounds.p99Ms && bounds.p99Ms * factor, "ms"],
      ["resident memory reached", report.peak_mib, bounds.peakMib, "MiB"],
    ] as const;
    for (const [what, value, limit, unit] of limits) {
      if (limit === undefined || value <= limit) continue;
      broken.push(`${what} ${value.toFixed(0)} ${unit}; the bound is ${limit} ${unit}`);
    }
    this.add({ scenario: name, done, broken, canary: report, seconds });
  }
}

function lastLines(output: string): string {
  return output.trim().split("\n").slice(-6).join("\n      ");
}
