/**
 * What the page of the configuration says of a setting.
 *
 * @module
 */
import type { ConfigValue } from "../../../../engine/ports/config.ts";

/** Whether the value is another than without any configuration. */
export function isChanged({ value, default: usual }: ConfigValue): boolean {
  return JSON.stringify(value) !== JSON.stringify(usual);
}

/** Where a value comes from: `line 12`, `PORT, line 12`, `command line`, `default`. */
export function originWords({ source, line, variable }: ConfigValue): string {
  const place = line === null ? "" : `line ${line}`;
  switch (source) {
    case "file":
      return place || "file";
    case "variable":
      return [variable ?? "variable", place].filter((part) => part !== "").join(", ");
    case "option":
      return "command line";
    case "default":
      return "default";
  }
}

/** Whether a search finds a setting: every word in its name, its value or where it is from. */
export function fitsSetting(setting: ConfigValue, search: string): boolean {
  const text = `${setting.key} ${JSON.stringify(setting.value)} ${originWords(setting)}`
    .toLowerCase();
  return search.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}
