/**
 * A whole engine in this process, with state and HTTP, and claims about what it does on the wire.
 *
 * The claims of one subject share an engine, since starting one takes longer than most of them.
 * They run one after another as steps of one test, which ends when the engine has left nothing
 * behind; so each uses names of its own.
 *
 * @module
 */
import { type Engine, startEngine } from "../../engine/mod.ts";
import { RawWsClient, type UpgradeShape } from "./raw_ws_client.ts";
import { WireClient } from "./wire_client.ts";

/** What a claim works with. */
export interface Wire {
  /** Port of the worker listener. */
  readonly port: number;
  /** Such as `http://127.0.0.1:40000`. */
  readonly httpUrl: string;
  readonly engine: Engine;
  /** Opens a line that ends with the claim. */
  open(shape?: UpgradeShape): Promise<WireClient>;
  /** Asks for an upgrade and lets the claim look at the answer. */
  ask(shape?: UpgradeShape): Promise<RawWsClient>;
}

/** What is claimed, and the proof. */
export type Claims = Readonly<Record<string, (wire: Wire) => Promise<void>>>;

/** How the engine of some claims is configured. */
export interface WireSettings {
  /** Lines below `engine:` in its config.yaml. */
  readonly engine?: readonly string[];
  /** `false`: it has no spans, so it adds no `traceparent` to what it sends on. */
  readonly traces?: boolean;
}

/** Proves claims on one engine. */
export function proveOnWire(subject: string, claims: Claims, settings: WireSettings = {}): void {
  Deno.test(`the engine on the wire: ${subject}`, async (t) => {
    await using engine = await start(settings);
    for (const [name, proof] of Object.entries(claims)) {
      // What the engine keeps open between claims is looked at when it has stopped.
      const [sanitizeOps, sanitizeResources] = [false, false];
      const fn = () => prove(engine, proof);
      await t.step({ name, fn, sanitizeOps, sanitizeResources });
    }
  });
}

async function prove(engine: Engine, proof: (wire: Wire) => Promise<void>): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const urlOf = (name: string) => engine.endpoints.find((each) => each.name === name)!.url;
  const port = Number(new URL(urlOf("workers")).port);
  await proof({
    engine,
    port,
    httpUrl: urlOf("http"),
    open: async (shape) => stack.use(await WireClient.connect(port, shape)),
    ask: async (shape) => stack.use(await RawWsClient.connect(port, shape)),
  });
}

async function start({ engine: settings = [], traces = true }: WireSettings): Promise<Engine> {
  const directory = await Deno.makeTempDir({ prefix: "wire-engine-" });
  const lines = [
    ...settings.length > 0 ? ["engine:"] : [],
    ...settings.map((line) => `  ${line}`),
    "workers:",
    "  - name: engine-observability",
    `    config: { traces: { enabled: ${traces} } }`,
    "  - name: engine-state",
    "  - name: engine-http",
    "    config: { port: 0, body_bytes_max: 65536, timeout_ms: 3000 }",
  ];
  await Deno.writeTextFile(`${directory}/config.yaml`, lines.join("\n") + "\n");
  const engine = await startEngine({ directory, port: 0, logLevel: "error" });
  return {
    get endpoints() {
      return engine.endpoints;
    },
    finished: engine.finished,
    info: () => engine.info(),
    stop: (options) => engine.stop(options),
    async [Symbol.asyncDispose]() {
      await engine.stop({ drain: false });
      await Deno.remove(directory, { recursive: true });
    },
  };
}
