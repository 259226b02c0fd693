/**
 * A real Deno KV database that fails, or waits, when a test says so.
 *
 * @module
 */

/** What a test may do with the operations of a database. */
export interface Faults {
  /** Runs before every commit; a throw is what the commit fails with. */
  beforeCommit?: (() => Promise<void> | void) | undefined;
  /** Runs before every read; a throw is what the read fails with. */
  beforeRead?: (() => Promise<void> | void) | undefined;
}

/** An opener of databases in which `faults` happen; they may be changed at any time. */
export function faultyKv(faults: Faults): (path: string) => Promise<Deno.Kv> {
  return async (path) => withFaults(await Deno.openKv(path), faults);
}

function withFaults(kv: Deno.Kv, faults: Faults): Deno.Kv {
  const own: Record<string, unknown> = {
    atomic: () => faultyCommit(kv.atomic(), faults),
    getMany: async (keys: readonly Deno.KvKey[]) => {
      await faults.beforeRead?.();
      return await kv.getMany([...keys]);
    },
  };
  return new Proxy(kv, { get: (target, name) => memberOf(own, target, name) });
}

function faultyCommit(operation: Deno.AtomicOperation, faults: Faults): Deno.AtomicOperation {
  return new Proxy(operation, {
    get: (target, name, proxy) => {
      const member = memberOf({}, target, name);
      if (typeof member !== "function") return member;
      if (name !== "commit") return (...values: unknown[]) => (member(...values), proxy);
      return async () => {
        await faults.beforeCommit?.();
        return await member();
      };
    },
  });
}

/** Methods keep the object they belong to, which has private fields. */
function memberOf(own: Record<string, unknown>, target: object, name: string | symbol): unknown {
  if (typeof name === "string" && Object.hasOwn(own, name)) return own[name];
  const member = Reflect.get(target, name, target);
  return typeof member === "function" ? member.bind(target) : member;
}
