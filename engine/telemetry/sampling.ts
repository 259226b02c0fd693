/**
 * Which new traces are recorded.
 *
 * @module
 */
import type { SamplingRule } from "../ports/telemetry.ts";

/** Part of the traces to record that begin with an operation: the first rule that fits decides. */
export function rateOf(operation: string, rules: readonly SamplingRule[], ratio: number): number {
  return rules.find((rule) => fits(operation, rule.operation))?.rate ?? ratio;
}

/** Whether a text fits a pattern in which `*` stands for any characters. */
export function fits(text: string, pattern: string): boolean {
  let at = 0;
  let next = 0;
  let star = -1;
  let resume = 0;
  while (at < text.length) {
    if (pattern[next] === "*") {
      star = next++;
      resume = at;
    } else if (pattern[next] === text[at]) {
      next++;
      at++;
    } else if (star >= 0) {
      next = star + 1;
      at = ++resume;
    } else {
      return false;
    }
  }
  while (pattern[next] === "*") next++;
  return next === pattern.length;
}
