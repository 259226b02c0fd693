/**
 * The worker listeners of a config.yaml besides the default one, and their access rules.
 *
 * @module
 */
import { isLoopback } from "../../sdk/typescript/wire/loopback.ts";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import { readExposeRule, RULES_MAX } from "../core/access/patterns.ts";
import type { ListenerSettings, RbacSettings } from "../ports/config.ts";
import type { CertificateFiles } from "../transport/certificate.ts";
import { type Fields, isWorkerName, NAME_RULE } from "./fields.ts";

/** Listeners in one file, besides the default one. */
export const LISTENERS_MAX = 32;
/** Default of `auth_timeout_ms`: how long an auth function or a hook may take. */
export const AUTH_TIMEOUT_MS = 10_000;
/** Longest time that an auth function or a hook may take: a minute. */
const AUTH_TIMEOUT_MS_MAX = 60_000;
/** Shortest: below it no function on another machine could decide. */
const AUTH_TIMEOUT_MS_MIN = 50;

/** Keys of one listener. */
export const LISTENER_KEYS = [
  "name",
  "host",
  "port",
  "auth_token",
  "tokens",
  "insecure",
  "allowed_origins",
  "tls",
  "middleware_function_id",
  "rbac",
] as const;

/** How listeners in the file differ from those in force, which are those of the start. */
export function listenerChanges(
  running: readonly ListenerSettings[],
  wanted: readonly ListenerSettings[],
): string {
  const named = (list: readonly ListenerSettings[], name: string): string | undefined =>
    JSON.stringify(list.find((listener) => listener.name === name));
  const names = new Set([...running, ...wanted].map(({ name }) => name));
  const changes = [...names].flatMap((name) => {
    const [before, after] = [named(running, name), named(wanted, name)];
    if (before === after) return [];
    if (before === undefined) return [`${name} is not open yet`];
    return [
      after === undefined ? `${name} stays open` : `${name} keeps its port, tokens and rules`,
    ];
  });
  return `until the engine restarts, ${changes.join(", ") || "their order changes nothing"}`;
}

const HOOK_KEYS = [
  "on_function_registration_function_id",
  "on_trigger_registration_function_id",
  "on_trigger_type_registration_function_id",
] as const;
const RBAC_KEYS = [
  "auth_function_id",
  "auth_timeout_ms",
  "expose_functions",
  ...HOOK_KEYS,
] as const;

/** Reads a certificate and its key, as those of the default listener are read. */
export type ReadTls = (fields: Fields) => CertificateFiles | undefined;

/** Reads `listeners`; `fields` is the section that has them. */
export function listenersOf(fields: Fields, readTls: ReadTls): ListenerSettings[] {
  const items = fields.items("listeners", LISTENER_KEYS);
  if (items.length > LISTENERS_MAX) fields.problem("listeners", `at most ${LISTENERS_MAX}`);
  const names = new Map<string, number | undefined>();
  return items.slice(0, LISTENERS_MAX).flatMap((item) => {
    const name = nameOf(item, names);
    const listener = listenerOf(item, name ?? "", readTls);
    return name === undefined || !listener ? [] : [listener];
  });
}

function nameOf(item: Fields, names: Map<string, number | undefined>): string | undefined {
  const name = item.text("name", "a name for logs and lists");
  if (name === undefined) {
    return item.has("name") ? undefined : item.problem("name", "a name for logs and lists");
  }
  if (!isWorkerName(name)) return item.problem("name", NAME_RULE);
  if (names.has(name)) {
    const what = `${name} again, first in line ${names.get(name)}`;
    return item.problem("name", "every name once", what);
  }
  names.set(name, item.lineOf("name"));
  return name;
}

function listenerOf(item: Fields, name: string, readTls: ReadTls): ListenerSettings | undefined {
  const token = item.secret("auth_token");
  const middleware = item.text("middleware_function_id", "the id of a function");
  const tls = item.has("tls") ? readTls(item.fields("tls", ["cert", "key"])) : undefined;
  const rbac = item.has("rbac") ? rbacOf(item.fields("rbac", RBAC_KEYS)) : undefined;
  const port = item.integer("port", 0, 65_535);
  if (!item.has("port")) item.problem("port", "0 to 65535");
  const settings: ListenerSettings = {
    name,
    host: item.text("host") ?? "127.0.0.1",
    port: port ?? 0,
    ...token === undefined ? {} : { auth_token: token },
    tokens: item.flag("tokens") ?? false,
    insecure: item.flag("insecure") ?? false,
    allowed_origins: item.texts("allowed_origins") ?? [],
    ...tls === undefined ? {} : { tls },
    ...middleware === undefined ? {} : { middleware_function_id: middleware },
    ...rbac === undefined ? {} : { rbac },
  };
  const isOpen = token === undefined && !settings.tokens && !settings.insecure;
  if (!isLoopback(settings.host) && isOpen) {
    item.problem("host", "a loopback address, or auth_token, tokens: true or insecure: true");
  }
  return settings;
}

function rbacOf(fields: Fields): RbacSettings {
  const auth_function_id = fields.text("auth_function_id", "the id of a function");
  const timeout = fields.integer("auth_timeout_ms", AUTH_TIMEOUT_MS_MIN, AUTH_TIMEOUT_MS_MAX);
  const hooks = HOOK_KEYS.flatMap((key) => {
    const id = fields.text(key, "the id of a function");
    return id === undefined ? [] : [[key, id] as const];
  });
  const rules = fields.list("expose_functions", (rule, at) => {
    if (at >= RULES_MAX) return at === RULES_MAX ? `at most ${RULES_MAX} rules` : undefined;
    const read = readExposeRule(rule);
    return typeof read === "string" ? read : undefined;
  });
  return {
    ...auth_function_id === undefined ? {} : { auth_function_id },
    auth_timeout_ms: timeout ?? AUTH_TIMEOUT_MS,
    expose_functions: rules ?? ([] as Json[]),
    ...Object.fromEntries(hooks),
  };
}
