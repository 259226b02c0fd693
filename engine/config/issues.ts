/**
 * What a built-in worker's own check found wrong, in the words of the other problems.
 *
 * Reads the issues by their structure, so that any check that throws such a list can be used.
 *
 * @module
 */
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import { received } from "./fields.ts";
import { pathOf, problemText, type YamlText } from "./yaml.ts";

/** One thing that is wrong, as `parse` of a built-in worker throws it. */
interface Issue {
  readonly path: readonly (string | number)[];
  readonly expected: string;
  /** What is there, when that is not the value itself. */
  readonly received?: string;
}

/** The problems that `parse` of a built-in worker threw about the value `raw` at `path`. */
export function issueTexts(
  thrown: unknown,
  path: string,
  raw: Json,
  source: YamlText,
): string[] {
  const issues = (thrown as { issues?: unknown }).issues;
  if (!Array.isArray(issues)) {
    const message = thrown instanceof Error ? thrown.message : String(thrown);
    return [problemText(path, "a valid configuration", `another: ${message}`, source.lineOf(path))];
  }
  return (issues as Issue[]).map((issue) => {
    const at = issue.path.reduce<string>((at, key) => pathOf(at, key), path);
    const value = issue.path.reduce<unknown>(memberOf, raw);
    return problemText(at, issue.expected, issue.received ?? received(value), source.lineOf(at));
  });
}

function memberOf(value: unknown, key: PropertyKey): unknown {
  return value !== null && typeof value === "object"
    ? (value as Record<PropertyKey, unknown>)[key]
    : undefined;
}
