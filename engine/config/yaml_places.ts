/**
 * Where the values of a YAML text stand.
 *
 * @module
 */

/** The path of a member: `env` and `PATH` become `env.PATH`. */
export function pathOf(parent: string, key: string | number): string {
  if (typeof key === "number") return `${parent}[${key}]`;
  if (!/^[\w-]+$/.test(key)) return `${parent}[${JSON.stringify(key)}]`;
  return parent === "" ? key : `${parent}.${key}`;
}

/** Lines by path, such as `workers[1].config.port`. */
export class Places {
  readonly #lines = new Map<string, number>();

  /** Notes a line; the first one of a path stays. */
  note(path: string, line: number): void {
    if (!this.#lines.has(path)) this.#lines.set(path, line);
  }

  /** The line noted for exactly this path. */
  at(path: string): number | undefined {
    return this.#lines.get(path);
  }

  /** The line of a path, or of the nearest one around it. */
  nearest(path: string): number | undefined {
    for (let rest = path;; rest = rest.replace(/(\.[\w-]+|\[[^[]*\]|^[\w-]+)$/, "")) {
      const line = this.#lines.get(rest);
      if (line !== undefined || rest === "") return line;
    }
  }
}
