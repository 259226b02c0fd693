/**
 * Programs that run in a real Node with the built SDK.
 *
 * @module
 */
import type { Json } from "../../mod.ts";

const SDK = new URL("../../sdk/npm/engine_sdk.js", import.meta.url).href;

/** Whether Node is on the path; says that tests are left out if it is not. */
export async function findNode(test: string): Promise<boolean> {
  const found = await new Deno.Command("node", { args: ["--version"], stdout: "null" }).output()
    .then(({ success }) => success, () => false);
  if (!found) console.log(`left out: ${test} needs node on the path`);
  return found;
}

/** A Node program that talks to the engine at `ENGINE_URL`; its lines of output are JSON. */
export class NodeProgram implements AsyncDisposable {
  readonly #process: Deno.ChildProcess;
  readonly #lines: ReadableStreamDefaultReader<string>;
  #rest = "";

  /** Starts `code`, which finds the SDK's names and `say(value)`. */
  constructor(engineUrl: string, code: string, env: Readonly<Record<string, string>> = {}) {
    const start = `import { EngineError, Logger, registerWorker, TriggerAction } from "${SDK}";
      const say = (value) => console.log(JSON.stringify(value));`;
    this.#process = new Deno.Command("node", {
      args: ["--input-type=module", "-e", `${start}\n${code}`],
      env: { ENGINE_URL: engineUrl, ENGINE_WORKER_NAME: "node-worker", ...env },
      stdin: "piped",
      stdout: "piped",
      stderr: "inherit",
    }).spawn();
    this.#lines = this.#process.stdout.pipeThrough(new TextDecoderStream()).getReader();
  }

  /** The next line of its output. */
  async said(): Promise<Json> {
    while (!this.#rest.includes("\n")) {
      const { value, done } = await this.#lines.read();
      if (done) throw new Error(`Node said nothing more than ${JSON.stringify(this.#rest)}`);
      this.#rest += value;
    }
    const end = this.#rest.indexOf("\n");
    const line = this.#rest.slice(0, end);
    this.#rest = this.#rest.slice(end + 1);
    return JSON.parse(line);
  }

  /** Ends its input, on which programs that serve wait, and gives its exit code. */
  async end(): Promise<number> {
    await this.#process.stdin.close();
    return (await this.#process.status).code;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#process.stdin.close().catch(() => {}); // Closed already, or Node is gone.
    await this.#lines.cancel();
    await this.#process.status;
  }
}
