/**
 * What the quickstart needs to know of the machine: ports, programs, processes.
 *
 * @module
 */
import { CommandError } from "../failure.ts";

/**
 * Makes sure that a port of this machine is free.
 *
 * @throws {CommandError} It is taken; names the option that chooses another one.
 */
export function checkPort(port: number, option: string): void {
  try {
    Deno.listen({ hostname: "127.0.0.1", port }).close();
  } catch {
    // Whatever the reason, the engine could not listen there either.
    throw new CommandError(
      `Port ${port} is taken; stop the other program, or choose another port with ${option}`,
    );
  }
}

/**
 * Makes sure that there is a Python that workers can use.
 *
 * @throws {CommandError} There is none, it is too old, or it has no pip.
 */
export async function checkPython(program = "python3"): Promise<void> {
  const code = "import sys, pip; sys.exit(sys.version_info < (3, 10))";
  try {
    const command = new Deno.Command(program, { args: ["-c", code], stderr: "null" });
    if ((await command.output()).success) return;
  } catch {
    // No such program: the same advice as for one that is too old.
  }
  throw new CommandError(`One worker is in Python: install ${program} 3.10 or newer, with pip`);
}

/** Whether there is a process of that id. */
export function isRunning(pid: number): boolean {
  try {
    Deno.kill(pid, 0 as unknown as Deno.Signal); // Signal 0 only asks.
    return true;
  } catch {
    return false; // There is no such process.
  }
}

/** What the promise resolves with; `undefined` if it needs longer than `ms` milliseconds. */
export async function within<T>(ms: number, promise: Promise<T>): Promise<T | undefined> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), ms);
  });
  return await Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/**
 * Posts JSON until somebody serves the route; the answer of the first that does.
 *
 * @throws {CommandError} Nobody does within `limitMs`.
 */
export async function postUntilThere(
  url: string,
  body: string,
  limitMs: number,
): Promise<Response> {
  const headers = { "Content-Type": "application/json" };
  const end = performance.now() + limitMs;
  for (;;) {
    const response = await fetch(url, { method: "POST", headers, body }).catch(() => undefined);
    if (response && ![404, 503].includes(response.status)) return response;
    await response?.body?.cancel();
    if (performance.now() > end) {
      const found = response?.status ?? "nothing";
      throw new CommandError(`expected ${url} to answer, received ${found}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}
