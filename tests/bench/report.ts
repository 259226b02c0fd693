/**
 * What a run has found, as people read it and as a later run does.
 *
 * A {@linkcode Finding} is one number with a meaning: a ratio of two things measured in turn, or a
 * size of its own such as a start-up time. Only ratios can be held against another run.
 *
 * @module
 */
import { table } from "./figures.ts";

/** `times` and `share` are ratios of one run; the others depend on the machine. */
export type Unit = "times" | "share" | "ms" | "MB" | "µs" | "a second";

/** One number that says how good something is. */
export interface Finding {
  /** The section that found it. */
  readonly section: string;
  /** Unique in a run, and the same in each. */
  readonly name: string;
  readonly value: number;
  readonly unit: Unit;
  readonly better: "more" | "less";
  /** Required value; absent: no requirement. */
  readonly target?: number;
}

/** All rounds of one thing that was measured. */
export interface Measurement {
  readonly section: string;
  /** The conditions, such as `100 B, 64 in flight`. */
  readonly situation: string;
  /** What was measured in them, such as `raw`. */
  readonly subject: string;
  readonly rounds: readonly object[];
}

/** A section, or a part of one, that could not be measured. */
export interface Gap {
  readonly section: string;
  readonly reason: string;
  /** It broke; otherwise something is missing here that it needs. */
  readonly failed: boolean;
}

/** The file that a run leaves. */
export interface ReportFile {
  readonly version: 1;
  readonly machine: string;
  readonly findings: readonly Finding[];
  readonly measurements: readonly Measurement[];
  readonly gaps: readonly Gap[];
}

/** Collects a run. */
export class Report {
  readonly findings: Finding[] = [];
  readonly measurements: Measurement[] = [];
  readonly gaps: Gap[] = [];
  readonly #texts: string[] = [];

  /** Adds a finding. @throws {Error} When there is one of that name, or it is no number. */
  find(finding: Finding): void {
    const { name, value } = finding;
    if (this.findings.some((other) => other.name === name)) throw new Error(`${name} twice`);
    if (!Number.isFinite(value)) throw new Error(`${name} is ${value}`);
    this.findings.push(finding);
  }

  /** Adds a table under a title, and what is to be known to read it. */
  show(title: string, markdown: string, note = ""): void {
    this.#texts.push([`## ${title}`, markdown, ...note === "" ? [] : [note]].join("\n\n"));
  }

  /** The whole as Markdown, requirements first. */
  toMarkdown(machine: string): string {
    const gaps = this.gaps.map(({ section, reason, failed }) =>
      `- ${section} ${failed ? "failed" : "was not measured"}: ${reason}`
    );
    return [
      machine,
      ...gaps.length === 0 ? [] : [gaps.join("\n")],
      "## Targets",
      this.#targets(),
      ...this.#texts,
    ].join("\n\n");
  }

  /** The whole for {@linkcode compare}. */
  toFile(machine: string): ReportFile {
    const { findings, measurements, gaps } = this;
    return { version: 1, machine, findings, measurements, gaps };
  }

  #targets(): string {
    const rows = this.findings.flatMap(({ section, name, value, unit, better, target }) => {
      if (target === undefined) return [];
      const met = better === "more" ? value >= target : value <= target;
      const asked = `${better === "more" ? "≥" : "≤"} ${amount(target, unit)}`;
      return [[`${section}: ${name}`, amount(value, unit), asked, met ? "yes" : "**no**"]];
    });
    return table(["target", "measured", "required", "met"], rows);
  }
}

/** A number with its unit, such as `3.2 ×` or `47 %`. */
export function amount(value: number, unit: Unit): string {
  switch (unit) {
    case "times":
      return `${value.toFixed(value < 1 ? 3 : value < 10 ? 2 : 1)} ×`;
    case "share":
      return `${(value * 100).toFixed(1)} %`;
    default:
      return `${value.toFixed(value < 10 ? 1 : 0)} ${unit}`;
  }
}
