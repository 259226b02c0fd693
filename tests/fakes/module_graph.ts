/**
 * Which modules Deno reads for one of ours.
 *
 * @module
 */

interface Dependency {
  readonly code?: { readonly specifier?: string };
  readonly isDynamic?: boolean;
}

interface Info {
  readonly modules: readonly {
    readonly specifier: string;
    readonly dependencies?: readonly Dependency[];
  }[];
  readonly redirects: Readonly<Record<string, string>>;
}

/** What is evaluated before the module runs, itself included: without what it imports later. */
export function staticGraph(entry: URL): Promise<string[]> {
  return graphOf(entry, ({ isDynamic }) => isDynamic !== true);
}

/** All that is read before it runs: what an import names outright, whether it runs or not. */
export function wholeGraph(entry: URL): Promise<string[]> {
  return graphOf(entry, () => true);
}

async function graphOf(entry: URL, follows: (it: Dependency) => boolean): Promise<string[]> {
  const args = ["info", "--json", entry.href];
  const { stdout, success } = await new Deno.Command(Deno.execPath(), { args }).output();
  if (!success) throw new Error(`deno info of ${entry.href} failed`);
  const { modules, redirects } = JSON.parse(new TextDecoder().decode(stdout)) as Info;
  const bySpecifier = new Map(modules.map((module) => [module.specifier, module]));
  const reached = new Set<string>();
  const open = [entry.href];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const at = redirects[next] ?? next;
    if (reached.has(at)) continue;
    reached.add(at);
    for (const dependency of bySpecifier.get(at)?.dependencies ?? []) {
      if (dependency.code?.specifier && follows(dependency)) open.push(dependency.code.specifier);
    }
  }
  return [...reached];
}
