/**
 * The section `engine.http_functions` of a config.yaml: what functions that are served by HTTP may
 * request (PROTOCOL 2.2). Without it, nothing.
 *
 * @module
 */
import type { HttpFunctionSettings } from "../ports/config.ts";
import { HOST_PATTERNS_MAX, readHostPattern } from "../served/hosts.ts";
import type { Fields } from "./fields.ts";

/** Keys of the section. */
const KEYS = ["allow", "allow_private", "auth_env"] as const;
/** Entries of `auth_env`. */
const VARIABLES_MAX = 100;

/** What holds where the file says nothing: no function is served by HTTP. */
export const NO_HTTP_FUNCTIONS: HttpFunctionSettings = {
  allow: [],
  allow_private: false,
  auth_env: [],
};

/** Reads `http_functions`; `fields` is the section that has it. */
export function httpFunctionsOf(fields: Fields): HttpFunctionSettings {
  if (!fields.has("http_functions")) return NO_HTTP_FUNCTIONS;
  const section = fields.fields("http_functions", KEYS);
  const allow = section.texts("allow", (text) => {
    const read = readHostPattern(text);
    return typeof read === "string" ? read : undefined;
  }) ?? [];
  if (allow.length > HOST_PATTERNS_MAX) {
    section.problem("allow", `at most ${HOST_PATTERNS_MAX} entries`);
  }
  const auth_env = section.texts("auth_env", (text) => {
    return /^[A-Za-z_]\w{0,127}$/.test(text) ? undefined : "the name of an environment variable";
  }) ?? [];
  if (auth_env.length > VARIABLES_MAX) section.problem("auth_env", `at most ${VARIABLES_MAX}`);
  return { allow, allow_private: section.flag("allow_private") ?? false, auth_env };
}
