/**
 * Two to five real routers, linked over a bus that loses, repeats, delays and parts, in a random but
 * repeatable run, and a model of what their workers may see.
 *
 * A worker of any engine may call what workers of any engine offer. The model knows of each call who
 * made it, who ran it and what was answered, and checks each frame that a worker receives. What an
 * engine knows of the others is checked when all has been quiet for a while.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { EngineMessage } from "../../sdk/typescript/wire/protocol.ts";
import { FakeCluster, type FakeEngine, type FakeWorker } from "../cluster/fake_engine.ts";
import type { Random } from "../fakes/random.ts";
import { markOf, oddValue } from "./world.ts";

/** Ids of functions, and a type that one worker of the cluster may provide. */
export const FUNCTIONS = ["f", "g", "h", "i"] as const;
/** A trigger type that workers provide. */
export const FILE_TYPE = "file";
/** Longer than the end of any link takes to be noticed. */
export const SETTLED_MS = 5_000;
/** Timeout of calls without one. */
const TIMEOUT_MS = 3_000;

/** A call in the model. */
interface SimCall {
  readonly mark: string;
  readonly caller: SimWorker;
  readonly id: string;
  /** Ran it; a call runs once, if at all. */
  callee: SimWorker | undefined;
  /** The engine's id of it, as its callee knows it. */
  calleeId: string;
  /** Raw JSON that its callee answered. */
  answer: string | undefined;
  progress: number;
  heardProgress: number;
  /** Its callee has received a cancellation. */
  isCancelled: boolean;
  /** Links that it passed. */
  links: number;
}

/** A simulated worker. */
export interface SimWorker {
  readonly engine: FakeEngine;
  readonly peer: FakeWorker;
  readonly name: string;
  readonly functions: Set<string>;
  /** Config marks of its routes, by id. */
  readonly routes: Map<string, string>;
  readonly files: Map<string, string>;
  readonly builtin: boolean;
  isGone: boolean;
  /** What a provider holds, by the id that it knows. */
  readonly held: Map<string, string>;
  providesFiles: boolean;
}

/** Engines, their workers and the model. */
export class ClusterWorld {
  readonly random: Random;
  readonly cluster = new FakeCluster();
  readonly workers: SimWorker[] = [];
  readonly calls = new Map<string, SimCall>();
  /** Of callers that are connected. */
  readonly open = new Set<SimCall>();
  /** Calls that succeeded; a run in which none does shows nothing. */
  succeeded = 0;
  /** Of which so many ran at another engine. */
  far = 0;
  readonly #leaving = new Set<FakeEngine>();
  #used = 0;
  #marks = 0;
  #lives = 0;

  constructor(random: Random) {
    this.random = random;
    this.cluster.network.onPublish = (subject, data) => this.#passed(subject, data);
    const count = 2 + random.below(4);
    for (let i = 0; i < count; i++) this.startEngine();
    for (let i = 0; i < 3; i++) this.offer(this.arrive(), random.pick(FUNCTIONS));
    this.cluster.clock.tick(500);
  }

  /** Engines that run. */
  get engines(): FakeEngine[] {
    return [...this.cluster.engines].filter((engine) => !this.#leaving.has(engine));
  }

  /** Bytes that are taken of all budgets. */
  get usedBytes(): number {
    return this.#used;
  }

  /** Starts an engine; its life is larger or smaller than others'. */
  startEngine(): FakeEngine {
    const memory = {
      limitBytes: Infinity,
      usedBytes: 0,
      isTight: false,
      used: () => 0,
      take: (_use: unknown, bytes: number) => (this.#used += bytes, true),
      release: (_use: unknown, bytes: number) => void (this.#used -= bytes),
      whenRoom: () => () => {},
    };
    const life = this.random.below(0xffff).toString(16).padStart(4, "0") +
      (++this.#lives).toString(16).padStart(12, "0");
    const settings = { invocation_timeout_ms: TIMEOUT_MS, cluster: { far_calls: 2 } };
    const engine = this.cluster.start({ settings, memory }, life);
    // As `engine-http`, which every engine has.
    const http = this.#connect(engine, "engine-http", true);
    http.peer.say({ type: "registertriggertype", id: "http", description: "Routes" });
    return engine;
  }

  /** An engine and its workers are gone, without a word. */
  killEngine(engine: FakeEngine): void {
    this.#forget(engine);
    engine.kill();
  }

  /** An engine stops in order; its workers leave before it does. */
  stopEngine(engine: FakeEngine): void {
    for (const worker of this.workers.filter((one) => one.engine === engine)) {
      if (!worker.builtin) this.leave(worker);
    }
    this.#forget(engine);
    this.#leaving.add(engine);
    engine.leave();
  }

  /** A worker connects. */
  arrive(): SimWorker {
    const { random } = this;
    const engine = random.pick(this.engines);
    const worker = this.#connect(engine, random.pick(["shop", "mail", "shop"]), false);
    return worker;
  }

  /** A worker disconnects. */
  leave(worker: SimWorker): void {
    worker.isGone = true;
    this.workers.splice(this.workers.indexOf(worker), 1);
    for (const call of [...this.open]) if (call.caller === worker) this.open.delete(call);
    worker.peer.cut();
  }

  /** A worker registers a function. */
  offer({ functions, peer }: SimWorker, id: string): void {
    functions.add(id);
    peer.say({ type: "registerfunction", id });
  }

  /** Some worker that is connected. */
  some(fits: (worker: SimWorker) => boolean = () => true): SimWorker | undefined {
    const found = this.workers.filter((worker) => !worker.builtin && fits(worker));
    return found.length > 0 ? this.random.pick(found) : undefined;
  }

  /** A worker calls a function; callers of all engines use the same few ids. */
  call(caller: SimWorker): void {
    const { random } = this;
    const isOpen = (id: string): boolean =>
      [...this.open].some((call) => call.caller === caller && call.id === id);
    const id = `i${random.below(20)}`;
    if (isOpen(id)) return;
    const mark = `m${++this.#marks}`;
    const call: SimCall = {
      mark,
      caller,
      id,
      callee: undefined,
      calleeId: "",
      answer: undefined,
      progress: 0,
      heardProgress: 0,
      isCancelled: false,
      links: 0,
    };
    this.calls.set(mark, call);
    this.open.add(call);
    const timeout = random.once(3) ? `"timeout_ms":${1 + random.below(2_000)},` : "";
    const size = random.once(40) ? `"big":"${"x".repeat(random.below(300_000))}",` : "";
    const data = oddValue(mark).replace("{", `{${size}`);
    caller.peer.say(
      `{"type":"invokefunction","invocation_id":"${id}","function_id":"${
        random.pick(FUNCTIONS)
      }",${timeout}"data":${data}}`,
    );
  }

  /** A worker answers one of its calls, sends progress, or answers a call that it does not have. */
  answer(worker: SimWorker): void {
    const { random } = this;
    const own = [...this.calls.values()].filter((call) => call.callee === worker);
    if (own.length === 0) return;
    const waiting = own.filter(({ answer }) => answer === undefined);
    const call = random.pick(waiting.length > 0 && !random.once(6) ? waiting : own);
    const { calleeId: invocation_id, mark } = call;
    if (random.once(8)) {
      const other = random.pick([...this.calls.values()]);
      if (other.callee !== worker) {
        const stranger = other.calleeId || invocation_id.replace(/.$/, "f");
        if (stranger !== invocation_id) this.#result(worker, stranger, '"forged"');
      }
      return;
    }
    if (random.once(4)) {
      if (call.answer !== undefined) return;
      const type = "invocationprogress";
      return worker.peer.say({ type, invocation_id, data: { mark, at: ++call.progress } });
    }
    if (call.answer !== undefined) return this.#result(worker, invocation_id, '"twice"');
    call.answer = oddValue(`${mark} by ${worker.name}`);
    this.#result(worker, invocation_id, call.answer);
  }

  /** A caller cancels one of its calls. */
  cancel(caller: SimWorker): void {
    const own = [...this.open].filter((call) => call.caller === caller);
    if (own.length === 0) return;
    const { id } = this.random.pick(own);
    caller.peer.say({ type: "cancelinvocation", invocation_id: id });
  }

  /** All workers of an engine are gone in the model. */
  #forget(engine: FakeEngine): void {
    for (const worker of this.workers.filter((one) => one.engine === engine)) {
      worker.isGone = true;
      this.workers.splice(this.workers.indexOf(worker), 1);
      for (const call of [...this.open]) if (call.caller === worker) this.open.delete(call);
    }
  }

  #result(worker: SimWorker, invocation_id: string, result: string): void {
    worker.peer.say(
      `{"type":"invocationresult","invocation_id":"${invocation_id}","function_id":"f",` +
        `"result":${result}}`,
    );
  }

  #connect(engine: FakeEngine, name: string, builtin: boolean): SimWorker {
    const peer = engine.worker(name, builtin ? name : null);
    const worker: SimWorker = {
      engine,
      peer,
      name: `${engine.name}/${peer.worker_id.slice(-5)}`,
      functions: new Set(),
      routes: new Map(),
      files: new Map(),
      builtin,
      isGone: false,
      held: new Map(),
      providesFiles: false,
    };
    peer.connection.onText = (text) => this.#receive(worker, JSON.parse(text), text);
    this.workers.push(worker);
    return worker;
  }

  #receive(worker: SimWorker, message: EngineMessage, text: string): void {
    if (worker.isGone) return;
    switch (message.type) {
      case "invokefunction":
        return this.#handed(worker, markOf(message.data), message.invocation_id!, text);
      case "invocationresult":
        return this.#ended(worker, message.invocation_id, message, text);
      case "invocationprogress":
        return this.#news(worker, message.data as { mark: string; at: number });
      case "cancelinvocation":
        for (const call of this.calls.values()) {
          if (call.callee === worker && call.calleeId === message.invocation_id) {
            call.isCancelled = true;
          }
        }
        return;
      case "registertrigger":
        assert.ok(!worker.held.has(message.id), `${message.id} was given twice`);
        worker.held.set(message.id, markOf(message.config));
        return;
      case "unregistertrigger":
        assert.ok(worker.held.delete(message.id), `${message.id} was taken back, but not given`);
        return;
      case "error":
        return assert.fail(`an error frame: ${text}`);
      default:
        return;
    }
  }

  /** No loops: a call passes one link at most. */
  #passed(subject: string, data: Uint8Array): void {
    if (!subject.includes(".to.")) return;
    const text = new TextDecoder().decode(data);
    for (const [, mark] of text.matchAll(/"type":"invokefunction".*?"mark":"(m\d+)"/g)) {
      const call = this.calls.get(mark!)!;
      assert.equal(++call.links, 1, `${mark} passes a second link`);
    }
  }

  /** Promises 7 and 9: a payload arrives as it was sent, and a call runs once. */
  #handed(worker: SimWorker, mark: string, invocation_id: string, text: string): void {
    const call = this.calls.get(mark);
    assert.ok(call, `an unknown call: ${text.slice(0, 300)}`);
    assert.equal(call.callee, undefined, `${mark} runs again`);
    const [, functionId] = /"function_id":"(\w)"/.exec(text)!;
    assert.ok(worker.functions.has(functionId!), `${worker.name} does not offer ${functionId}`);
    assert.ok(text.includes('"n":12345678901234567890,"f":1.50,"e":[ ],"x":null}'), text);
    call.callee = worker;
    call.calleeId = invocation_id;
  }

  /** Promises 1, 2 and 3: each call has one result, and that is its callee's, or an error. */
  #ended(
    worker: SimWorker,
    id: string,
    { error }: { error?: { code: string } },
    text: string,
  ): void {
    const call = [...this.open].find((one) => one.caller === worker && one.id === id);
    assert.ok(call, `a result for a call that is over: ${text}`);
    this.open.delete(call);
    if (error) {
      const known =
        /^(function_not_found|invocation_stopped|timeout|cancelled|overloaded|trigger_\w+)$/;
      assert.match(error.code, known, text);
      if (error.code === "function_not_found") {
        assert.equal(call.callee, undefined, `${call.mark} was said not to be found, and runs`);
      }
      return;
    }
    assert.ok(call.answer !== undefined, `${call.mark} has a result that no worker sent: ${text}`);
    assert.ok(text.includes(`"result":${call.answer}`), text);
    this.succeeded++;
    if (call.callee!.engine !== worker.engine) this.far++;
  }

  /** Promise 6: progress arrives in its order, without a gap, before the result. */
  #news(worker: SimWorker, { mark, at }: { mark: string; at: number }): void {
    const call = this.calls.get(mark)!;
    assert.equal(call.caller, worker);
    assert.ok(this.open.has(call), `progress of ${mark} behind its end`);
    assert.equal(at, call.heardProgress + 1, `progress of ${mark}`);
    call.heardProgress = at;
  }
}
