/**
 * The section `engine.cluster` of a config.yaml: several engines as one. Without it an engine is
 * alone.
 *
 * Files are named by absolute paths afterwards; what is in them is read when the cluster starts.
 *
 * @module
 */
import { isLoopback } from "../../sdk/typescript/wire/loopback.ts";
import type { ClusterSettings, ClusterTls } from "../ports/config.ts";
import { type Fields, isWorkerName, NAME_RULE, received } from "./fields.ts";

/** Default of `far_calls`. */
export const FAR_CALLS = 16;
/** Addresses of NATS nodes in one file. */
export const NATS_ADDRESSES_MAX = 32;
/** Upper bound of `far_calls`. */
const FAR_CALLS_MAX = 1_000_000;
const COPIES = [1, 3, 5] as const;

const KEYS = [
  "name",
  "nats",
  "user",
  "password",
  "token",
  "credentials",
  "tls",
  "insecure",
  "engine_name",
  "log",
  "keeper",
  "copies",
  "require_sync",
  "monitor",
  "far_calls",
] as const;
const TLS_KEYS = ["ca", "cert", "key"] as const;

/** Makes the path of a file absolute. */
export type AbsolutePath = (path: string) => string;

/** Reads `cluster`; `fields` is the section that has it. */
export function clusterOf(
  fields: Fields,
  absolute: AbsolutePath,
  hostname: () => string = Deno.hostname,
): ClusterSettings | undefined {
  if (!fields.has("cluster")) return undefined;
  const section = fields.fields("cluster", KEYS);
  const name = nameOf(section);
  const insecure = section.flag("insecure") ?? false;
  const identity = identityOf(section, absolute);
  const tls = tlsOf(section, absolute);
  const isVerified = tls?.ca !== undefined || tls?.cert !== undefined;
  const nats = natsOf(section, insecure || isVerified || identity !== undefined);
  const state = stateOf(section, insecure);
  const engine_name = section.text("engine_name", NAME_RULE) ?? hostname();
  if (section.has("engine_name") && !isWorkerName(engine_name)) {
    section.problem("engine_name", NAME_RULE);
  }
  return {
    name: name ?? "",
    nats,
    ...identity,
    ...tls === undefined ? {} : { tls },
    insecure,
    engine_name,
    ...state,
    far_calls: section.integer("far_calls", 0, FAR_CALLS_MAX) ?? FAR_CALLS,
  };
}

function nameOf(section: Fields): string | undefined {
  const rule = "1 to 64 letters, digits, - or _: the name that all engines of the cluster share";
  const name = section.text("name", rule);
  if (name === undefined) return section.has("name") ? undefined : section.problem("name", rule);
  return /^[A-Za-z0-9_-]{1,64}$/.test(name) ? name : section.problem("name", rule);
}

/** The addresses; `isGuarded`: those that other machines reach are allowed. */
function natsOf(section: Fields, isGuarded: boolean): string[] {
  const rule = "the addresses of NATS nodes, such as [nats://n1:4222]";
  const nats = section.texts("nats", (text) => {
    const problem = addressProblem(text);
    if (problem !== undefined || isGuarded) return problem;
    if (isLoopback(new URL(text).hostname)) return undefined;
    return "a loopback address, or user and password, token, credentials, tls or insecure: true";
  });
  if (nats === undefined) {
    if (!section.has("nats")) section.problem("nats", rule);
    return [];
  }
  if ((section.value("nats") as unknown[]).length === 0) section.problem("nats", rule, "none");
  if (nats.length > NATS_ADDRESSES_MAX) {
    section.problem("nats", `at most ${NATS_ADDRESSES_MAX} addresses`);
  }
  return nats;
}

function addressProblem(text: string): string | undefined {
  const expected = "nats://host:port or tls://host:port";
  if (!/^(nats|tls):\/\//.test(text) || !URL.canParse(text)) return expected;
  const { username, password, pathname, search, hostname } = new URL(text);
  if (username !== "" || password !== "") return "an address without a user; set user and password";
  return hostname === "" || !/^\/?$/.test(pathname) || search !== "" ? expected : undefined;
}

/** How the engine identifies itself to NATS. */
type Identity = Pick<ClusterSettings, "user" | "password" | "token" | "credentials">;

function identityOf(section: Fields, absolute: AbsolutePath): Identity | undefined {
  const [user, password] = [section.text("user"), section.secret("password")];
  const token = section.secret("token");
  const file = section.text("credentials", "the path of a credentials file");
  const ways = [user ?? password, token, file].filter((way) => way !== undefined).length;
  if (ways > 1) {
    const expected = "one of user and password, token, credentials";
    section.problem(file === undefined ? "token" : "credentials", expected, "several");
  }
  if (user !== undefined && password === undefined) {
    section.problem("password", "the password of user", "nothing");
  }
  if (password !== undefined && user === undefined) {
    section.problem("user", "the user of password", "nothing");
  }
  if (ways === 0) return undefined;
  return {
    ...user === undefined ? {} : { user },
    ...password === undefined ? {} : { password },
    ...token === undefined ? {} : { token },
    ...file === undefined ? {} : { credentials: readable(section, "credentials", absolute(file)) },
  };
}

function tlsOf(section: Fields, absolute: AbsolutePath): ClusterTls | undefined {
  if (!section.has("tls")) return undefined;
  const fields = section.fields("tls", TLS_KEYS);
  const files = TLS_KEYS.flatMap((key) => {
    const path = fields.text(key, "the path of a PEM file");
    return path === undefined ? [] : [[key, readable(fields, key, absolute(path))] as const];
  });
  const tls: ClusterTls = Object.fromEntries(files);
  if ((tls.cert === undefined) !== (tls.key === undefined)) {
    const missing = tls.cert === undefined ? "cert" : "key";
    if (!fields.has(missing)) fields.problem(missing, "the path of a PEM file", "nothing");
  }
  return tls;
}

/** The path; a file that is not there is a problem. */
function readable(fields: Fields, key: string, path: string): string {
  try {
    if (Deno.statSync(path).isFile) return path;
    fields.problem(key, "a file", `${received(path)}, which is not a file`);
  } catch {
    fields.problem(key, "a file", `${received(path)}, which cannot be read`);
  }
  return path;
}

/** Where state, queues and cron are kept. */
type State = Pick<ClusterSettings, "log" | "keeper" | "copies" | "require_sync" | "monitor">;

function stateOf(section: Fields, insecure: boolean): State {
  const written = section.secret("log") ?? "jetstream";
  if (!/^(jetstream|none|postgres(ql)?:\/\/[^/?#]+\/[^/?#]+.*)$/.test(written)) {
    const expected = "jetstream, none, or postgres://user:password@host/database";
    section.problem("log", expected, "something else");
  } else if (!insecure && isOpenDatabase(written)) {
    const expected = "an address with user and password, since other machines reach that database";
    section.problem("log", `${expected}, or insecure: true`, "one without");
  }
  const copies = section.integer("copies", 1, 5) ?? 3;
  if (!COPIES.some((count) => count === copies)) section.problem("copies", "1, 3 or 5");
  if (copies === 1 && section.has("copies") && !insecure && written === "jetstream") {
    section.problem("copies", "3 or 5, or insecure: true, since one copy is lost with its machine");
  }
  const monitor = section.texts("monitor", (text) => {
    const isUrl = /^https?:\/\//.test(text) && URL.canParse(text);
    return isUrl ? undefined : "the monitoring address of a NATS node, such as http://n1:8222";
  });
  return {
    log: written,
    keeper: section.flag("keeper") ?? true,
    copies: copies as State["copies"],
    require_sync: section.flag("require_sync") ?? true,
    monitor: monitor ?? [],
  };
}

/** Whether an address is that of a database that other machines reach and that asks for nothing. */
function isOpenDatabase(log: string): boolean {
  if (!log.startsWith("postgres") || !URL.canParse(log)) return false;
  const { hostname, password, searchParams } = new URL(log);
  return password === "" && !searchParams.has("sslcert") && !isLoopback(hostname);
}
