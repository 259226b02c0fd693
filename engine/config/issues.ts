/**
 * What a built-in worker's own check found wrong, in the words of the other problems.
 *
 * Reads the issues by their shape, so that any check that throws such a list can be used.
 *
 * @module
 */
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import { received } from "./fields.ts";
import { pathOf, problemText, type YamlText } from "./yaml_text.ts";

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
  return (issues as Issue[]).flatMap((issue) => {
    const at = issue.path.reduce<string>((at, key) => pathOf(at, key as string | number), path);
    const value = issue.path.reduce<unknown>(memberOf, raw);
    if (issue.code !== "unrecognized_keys") {
      return [problemText(at, expectedBy(issue), received(value), source.lineOf(at))];
    }
    return (issue.keys ?? []).map((key) => {
      const inner = pathOf(at, key);
      return problemText(inner, "a known key", "an unknown key", source.lineOf(inner));
    });
  });
}

/** The fields of an issue that are used here. */
interface Issue {
  readonly code: string;
  readonly path: readonly PropertyKey[];
  readonly message: string;
  readonly expected?: string;
  readonly format?: string;
  readonly keys?: readonly string[];
  readonly values?: readonly unknown[];
  readonly minimum?: number | bigint;
  readonly maximum?: number | bigint;
}

/** A schema can say it itself: its message then begins with `expected`. */
function expectedBy(issue: Issue): string {
  if (issue.message.startsWith("expected ")) return issue.message.slice("expected ".length);
  if (issue.code === "too_small") return `at least ${issue.minimum}`;
  if (issue.code === "too_big") return `at most ${issue.maximum}`;
  if (issue.code === "invalid_value" && issue.values) {
    return issue.values.length === 1
      ? received(issue.values[0])
      : `one of ${issue.values.join(", ")}`;
  }
  if (issue.code === "invalid_format") return `a valid ${issue.format}`;
  if (issue.code === "invalid_type") return TYPE_WORDS[issue.expected ?? ""] ?? issue.expected!;
  return issue.message.charAt(0).toLowerCase() + issue.message.slice(1);
}

const TYPE_WORDS: Readonly<Record<string, string>> = {
  string: "a text",
  number: "a number",
  int: "a whole number",
  boolean: "true or false",
  array: "a list",
  object: "a mapping",
  record: "a mapping",
};

function memberOf(value: unknown, key: PropertyKey): unknown {
  return value !== null && typeof value === "object"
    ? (value as Record<PropertyKey, unknown>)[key]
    : undefined;
}
