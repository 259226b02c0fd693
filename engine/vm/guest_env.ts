/**
 * What a program in a microVM gets of the engine's own environment: settings of the network and of
 * package managers, never the rest, because variables hold keys.
 *
 * @module
 */
import { isWithin, SYSTEM } from "../install/guest_access.ts";

/** Where programs of a guest are found when nothing comes before. */
export const SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** Folders with certificates that a guest has a copy of, where this machine has them. */
const CERTIFICATES = ["/etc/ssl/certs", "/etc/pki/tls/certs", "/etc/pki/ca-trust/extracted"];

const ALLOWED = [
  /^(https?|ftp|all|no)_proxy$/i,
  /^(PIP|UV|NPM_CONFIG)_/,
  /^npm_config_/,
  /^(SSL_CERT_(FILE|DIR)|NODE_EXTRA_CA_CERTS|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE|GIT_SSL_CAINFO)$/,
  /^(DENO_CERT|DENO_TLS_CA_STORE|NIX_SSL_CERT_FILE|AWS_CA_BUNDLE|HTTPLIB2_CA_CERTS)$/,
  /^(GRPC_DEFAULT_SSL_ROOTS_FILE_PATH|JSR_URL|LANG|LANGUAGE|LC_[A-Z]+|TZ)$/,
];
/** Where this machine's package managers keep things is nothing to a guest. */
const PLACES_OF_THE_HOST = [
  /^npm_config_(cache|tmp|(global_|local_)?prefix|(global|user)config|init_module|node_gyp)$/i,
  /^PIP_(CACHE_DIR|CONFIG_FILE|LOG|PREFIX|ROOT|SRC|TARGET)$/,
  /^UV_(CACHE_DIR|PROJECT_ENVIRONMENT|PYTHON|PYTHON_INSTALL_DIR|TOOL_BIN_DIR|TOOL_DIR)$/,
];
const LOOPBACK = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/;

/**
 * The part of an environment that a guest may have. Paths that it would not find are left out;
 * `visible` are the folders that it sees besides the system's.
 */
export function guestEnv(
  env: Readonly<Record<string, string>>,
  visible: readonly string[],
): Record<string, string> {
  const places = [SYSTEM, ...CERTIFICATES, ...visible];
  const passed: Record<string, string> = {};
  for (const [name, value] of Object.entries(env)) {
    if (!ALLOWED.some((pattern) => pattern.test(name))) continue;
    if (PLACES_OF_THE_HOST.some((pattern) => pattern.test(name))) continue;
    const words = value.split(/\s+/).filter((word) => isFound(word, places));
    const left = /(^|\s)(\/|~|file:)/.test(value) ? words.join(" ") : value;
    if (left !== "" || value === "") passed[name] = left;
  }
  return passed;
}

/** Has package managers and Deno keep what they fetch in a folder of the worker's. */
export function cacheEnv(folder: string): Record<string, string> {
  return {
    XDG_CACHE_HOME: folder,
    DENO_DIR: `${folder}/deno`,
    DENO_NO_UPDATE_CHECK: "1",
    npm_config_cache: `${folder}/npm`,
    npm_config_update_notifier: "false",
    PIP_CACHE_DIR: `${folder}/pip`,
    UV_CACHE_DIR: `${folder}/uv`,
    UV_LINK_MODE: "copy",
  };
}

/**
 * The environment as a booted guest needs it: what leads to this machine's loopback address leads
 * to `engineHost` (such as `10.0.2.2:49134`), under which the guest reaches the engine, and no
 * proxy stands between the two.
 */
export function addressedEnv(
  env: Readonly<Record<string, string>>,
  engineHost: string,
): Record<string, string> {
  const addressed: Record<string, string> = { ...env };
  const hostname = engineHost.replace(/:\d+$/, "");
  if (env.ENGINE_URL !== undefined) {
    addressed.ENGINE_URL = env.ENGINE_URL.replace(/^(\w+:\/\/)[^/?#]*/, `$1${engineHost}`);
  }
  const proxies = Object.keys(env).filter((name) => /^(https?|ftp|all)_proxy$/i.test(name));
  for (const name of proxies) addressed[name] = withoutLoopback(env[name]!, hostname);
  if (proxies.length === 0) return addressed;
  for (const name of ["no_proxy", "NO_PROXY"]) {
    const known = env[name] ?? env.no_proxy ?? env.NO_PROXY ?? "";
    addressed[name] = known === "" ? hostname : `${known},${hostname}`;
  }
  return addressed;
}

function isFound(word: string, places: readonly string[]): boolean {
  if (word.startsWith("~")) return false;
  const path = word.startsWith("file:") ? word.replace(/^file:(\/\/)?/, "") : word;
  if (!path.startsWith("/")) return true;
  return !path.split("/").includes("..") && places.some((place) => isWithin(path, place));
}

function withoutLoopback(url: string, hostname: string): string {
  return url.replace(
    /^(\w+:\/\/)?([^/@]*@)?([^/:@[]+|\[[^\]]*\])/,
    (all, scheme = "", user = "", host) =>
      LOOPBACK.test(host) ? `${scheme}${user}${hostname}` : all,
  );
}
