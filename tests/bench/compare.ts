/**
 * Holds a run against an earlier one.
 *
 * Only ratios are compared: both their sides were measured in turn on one machine, so they mean
 * the same on another. Rates and times do not.
 *
 * @module
 */
import { table } from "./figures.ts";
import { amount, type Finding, type ReportFile } from "./report.ts";

/** More than this part worse is a regression. */
export const WORSE_MAX = 0.15;

/** What has become worse, or better. */
export interface Change {
  readonly finding: Finding;
  readonly before: number;
  /** Part of the earlier value that was lost; negative: gained. */
  readonly lost: number;
}

/** Two runs side by side. */
export interface Comparison {
  /** Every ratio that both have. */
  readonly changes: readonly Change[];
  /** Names of ratios that only the earlier run has. */
  readonly missing: readonly string[];
}

/** Compares the ratios of two runs by name. */
export function compare(before: readonly Finding[], now: readonly Finding[]): Comparison {
  const old = before.filter(isRatio);
  const changes: Change[] = [];
  const missing: string[] = [];
  for (const { name, value, better } of old) {
    const finding = now.find((each) => isRatio(each) && each.name === name);
    if (!finding) missing.push(name);
    else {
      const gained = (finding.value - value) / value;
      changes.push({ finding, before: value, lost: better === "more" ? -gained : gained });
    }
  }
  return { changes, missing };
}

/** Those that lost too much. */
export function regressions({ changes }: Comparison): Change[] {
  return changes.filter(({ lost }) => lost > WORSE_MAX);
}

/**
 * What is worse than before. What seems so is measured `again`, given the sections it is in, and
 * has to be worse again: a machine that was busy for a moment makes nothing worse twice.
 */
export async function findWorse(
  before: readonly Finding[],
  now: readonly Finding[],
  again: (sections: ReadonlySet<string>) => Promise<readonly Finding[]>,
): Promise<Change[]> {
  const worse = regressions(compare(before, now));
  if (worse.length === 0) return [];
  const second = await again(new Set(worse.map(({ finding }) => finding.section)));
  const { changes } = compare(before, second);
  // What the second look did not find at all has not been shown to be well.
  return worse.filter(({ finding: { name } }) => {
    const change = changes.find(({ finding }) => finding.name === name);
    return !change || change.lost > WORSE_MAX;
  });
}

/** Every ratio beside its earlier value, as Markdown; those that are worse stand out. */
export function showComparison(
  { changes, missing }: Comparison,
  worse: readonly Change[],
): string {
  const rows = changes.map(({ finding: { section, name, value, unit }, before, lost }) => {
    const isWorse = worse.some(({ finding }) => finding.name === name);
    const gained = `${lost > 0 ? "−" : "+"}${Math.abs(lost * 100).toFixed(0)} %`;
    const cells = [`${section}: ${name}`, amount(before, unit), amount(value, unit)];
    return [...cells, isWorse ? `**${gained}**` : gained];
  });
  return [
    "## Beside the earlier run",
    table(["ratio", "before", "now", "gained or lost"], rows),
    ...missing.length === 0 ? [] : [missing.map((name) => `- not measured: ${name}`).join("\n")],
  ].join("\n\n");
}

/** Reads the file of an earlier run. @throws {Error} When it is none; the message says so. */
export async function readReportFile(path: string): Promise<ReportFile> {
  let file: unknown;
  try {
    file = JSON.parse(await Deno.readTextFile(path));
  } catch (error) {
    throw new Error(`${path} cannot be read: ${error instanceof Error ? error.message : error}`);
  }
  if (!isReportFile(file)) {
    throw new Error(`${path} is not a file that deno task bench has written`);
  }
  return file;
}

function isRatio({ unit }: Finding): boolean {
  return unit === "times" || unit === "share";
}

function isReportFile(file: unknown): file is ReportFile {
  if (typeof file !== "object" || file === null) return false;
  const { version, findings } = file as Partial<Record<keyof ReportFile, unknown>>;
  return version === 1 && Array.isArray(findings) && findings.every(isFinding);
}

function isFinding(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  const found = value as Partial<Record<keyof Finding, unknown>>;
  return typeof found.name === "string" && typeof found.value === "number" &&
    typeof found.unit === "string" && (found.better === "more" || found.better === "less");
}
