/**
 * Holds a run against an earlier one.
 *
 * Only ratios are compared: both their sides were measured in turn on one machine, so they mean
 * the same on another. Rates and times do not.
 *
 * @module
 */
import type { Finding, ReportFile } from "./report.ts";

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
