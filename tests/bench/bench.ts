/**
 * What a section of the benchmark works with: measuring in turn, and telling what was found.
 *
 * @module
 */
import type { Figures, Run } from "./load.ts";
import type { BenchOptions } from "./options.ts";
import type { Finding, Report } from "./report.ts";

/** One part of the table, with servers of its own. */
export interface Section {
  /** What `--only` calls it. */
  readonly name: string;
  /** Measures and reports. @throws {Missing} When this machine lacks what it needs. */
  measure(bench: Bench): Promise<void>;
}

/** Something is not here that a section needs; the message says what. */
export class Missing extends Error {
  override readonly name = "Missing";
}

/** What {@linkcode Bench} works with. */
export interface BenchParts {
  readonly section: string;
  readonly options: BenchOptions;
  readonly report: Report;
  /** Runs the load generator. */
  readonly load: (run: Run, seconds: number) => Promise<Figures>;
}

/** One section's way to measure. */
export class Bench {
  readonly #parts: BenchParts;

  constructor(parts: BenchParts) {
    this.#parts = parts;
  }

  get options(): BenchOptions {
    return this.#parts.options;
  }

  /** Loads servers one after the other, uncounted: V8 compiles for seconds what has just begun. */
  async warmUp(runs: readonly Run[], seconds: number): Promise<void> {
    for (const run of runs) await this.#parts.load(run, seconds);
  }

  /** Loads several servers in turn with the generator. */
  loadAlternately<Name extends string>(
    situation: string,
    runs: Readonly<Record<Name, Run>>,
  ): Promise<Record<Name, Figures[]>> {
    const { load, options: { seconds } } = this.#parts;
    const tasks = Object.entries<Run>(runs).map(([name, run]) => [name, () => load(run, seconds)]);
    return this.alternately(situation, Object.fromEntries(tasks));
  }

  /** Loads a server with the generator once. */
  load(run: Run): Promise<Figures> {
    const { load, options: { seconds } } = this.#parts;
    return load(run, seconds);
  }

  /**
   * Measures several subjects in turn and keeps all rounds for the file.
   *
   * @param roundsMax For what takes long and varies little. Default: as many as the options say.
   */
  async alternately<Name extends string, Found extends object>(
    situation: string,
    subjects: Readonly<Record<Name, () => Promise<Found>>>,
    roundsMax: number = Infinity,
  ): Promise<Record<Name, Found[]>> {
    const { section, options, report } = this.#parts;
    console.error(`${section}: ${situation}`);
    const found = await alternately(Math.min(options.rounds, roundsMax), subjects);
    for (const [subject, rounds] of Object.entries<Found[]>(found)) {
      report.measurements.push({ section, situation, subject, rounds });
    }
    return found;
  }

  /** Adds a finding of this section. */
  find(finding: Omit<Finding, "section">): void {
    const { section, report } = this.#parts;
    report.find({ section, ...finding });
  }

  /** Adds a table. */
  show(title: string, markdown: string, note?: string): void {
    this.#parts.report.show(title, markdown, note);
  }

  /** Says that a part of this section could not be measured. */
  skip(reason: string): void {
    const { section, report } = this.#parts;
    report.gaps.push({ section, reason, failed: false });
  }
}

/** The rounds of each subject, in order. */
export async function alternately<Name extends string, Found>(
  rounds: number,
  subjects: Readonly<Record<Name, () => Promise<Found>>>,
): Promise<Record<Name, Found[]>> {
  const names = Object.keys(subjects) as Name[];
  const found = Object.fromEntries(names.map((name): [Name, Found[]] => [name, []])) as Record<
    Name,
    Found[]
  >;
  for (let round = 0; round < rounds; round++) {
    for (let turn = 0; turn < names.length; turn++) {
      const name = names[(round + turn) % names.length]!;
      found[name].push(await subjects[name]());
    }
  }
  return found;
}
