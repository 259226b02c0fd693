/**
 * Adapts a program's environment to the network that a booted guest has.
 *
 * @module
 */

const LOOPBACK = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/;

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

function withoutLoopback(url: string, hostname: string): string {
  return url.replace(
    /^(\w+:\/\/)?([^/@]*@)?([^/:@[]+|\[[^\]]*\])/,
    (all, scheme = "", user = "", host) =>
      LOOPBACK.test(host) ? `${scheme}${user}${hostname}` : all,
  );
}
