/**
 * Options of `deno task bench`.
 *
 * @module
 */
import { parseArgs } from "node:util";

/** The parsed command line. */
export interface BenchOptions {
  /** Where the figures are written. */
  readonly json: string;
  /** An earlier file of figures to compare with. */
  readonly compare?: string;
  /** Sections to measure; none: all. */
  readonly only: readonly string[];
  readonly rounds: number;
  /** Of one measurement, without its warm-up. */
  readonly seconds: number;
  /** The checkout whose engine and SDK are measured, with a slash at its end. */
  readonly tree: string;
}

/** Invalid options; the message says what to write instead. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** The help text. */
export const USAGE = `deno task bench [options]
  --json FILE      where the figures are written (bench.json)
  --compare FILE   fails when a ratio is over 15 % worse than in an earlier FILE; only ratios are
                   compared, since rates and times depend on the machine
  --only NAME      measures this section only; may be repeated
  --rounds N       of each measurement, in turn with what it is compared with (5)
  --seconds S      of one measurement (0.5)
  --tree DIR       measures the engine of another checkout (this one)`;

const ROUNDS_MAX = 99;
const SECONDS_MAX = 10;
const SECONDS_MIN = 0.1;
const HERE = new URL("../../", import.meta.url).pathname;

/** Parses the command line. @throws {UsageError} For invalid options. */
export function readOptions(words: readonly string[], sections: readonly string[]): BenchOptions {
  const { json, compare, only, rounds, seconds, tree } = parse(words);
  for (const name of only) {
    if (sections.includes(name)) continue;
    throw new UsageError(`There is no section ${name}; there are ${sections.join(", ")}`);
  }
  return {
    json,
    ...compare === undefined ? {} : { compare },
    only,
    rounds: number("--rounds", rounds, 1, ROUNDS_MAX, true),
    seconds: number("--seconds", seconds, SECONDS_MIN, SECONDS_MAX, false),
    tree: tree.endsWith("/") ? tree : `${tree}/`,
  };
}

interface Words {
  json: string;
  compare?: string;
  only: string[];
  rounds: string;
  seconds: string;
  tree: string;
}

function parse(words: readonly string[]): Words {
  try {
    return parseArgs({
      args: [...words],
      options: {
        json: { type: "string", default: "bench.json" },
        compare: { type: "string" },
        only: { type: "string", multiple: true, default: [] },
        rounds: { type: "string", default: "5" },
        seconds: { type: "string", default: "0.5" },
        tree: { type: "string", default: HERE },
      },
    }).values;
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

function number(name: string, word: string, min: number, max: number, whole: boolean): number {
  const value = word.trim() === "" ? NaN : Number(word);
  if (value >= min && value <= max && (!whole || Number.isInteger(value))) return value;
  const kind = whole ? "a whole number" : "a number";
  throw new UsageError(`${name} has to be ${kind} from ${min} to ${max}, not ${word}`);
}
