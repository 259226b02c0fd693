/**
 * What a program may write with the SDK under strict rules, and what it may not: each line after
 * `@ts-expect-error` has to be an error. Checked by `deno check`, and by tsc against the built
 * package (`types_test.ts`); never run.
 *
 * @module
 */
import { type } from "arktype";
import {
  type CallContext,
  EngineError,
  type Json,
  Logger,
  registerWorker,
  TriggerAction,
} from "engine-sdk";
import * as v from "valibot";
import * as z from "zod";

/** Fails to compile unless both types are the same. */
function same<A>() {
  return <B>(
    _value: B,
    ..._proof: [A] extends [B] ? [B] extends [A] ? [] : [never] : [never]
  ) => {};
}

interface Pair {
  a: number;
  b: number;
}

interface Sum {
  c: number;
}

interface Route {
  api_path: string;
  http_method?: string;
}

const worker = registerWorker();
const pair = z.object({ a: z.number(), b: z.number().default(1) });

/** Handlers have the types of their schemas, from each library. */
export function schemas(): void {
  worker.registerFunction("math::add", (payload) => {
    same<{ a: number; b: number }>()(payload);
    return { c: payload.a + payload.b };
  }, { input: pair, output: z.object({ c: z.number() }) });

  worker.registerFunction("math::half", async (payload, _metadata, context) => {
    same<{ n: number }>()(payload);
    same<CallContext>()(context);
    return await Promise.resolve(payload.n / 2);
  }, { input: v.object({ n: v.number() }) });

  worker.registerFunction("math::name", ({ name }) => name.length, {
    input: type({ name: "string" }),
  });

  worker.registerFunction("math::sum", (payload: Pair) => ({ c: payload.a }), {
    output: z.object({ c: z.number() }),
  });

  // @ts-expect-error The payload has no member `d`.
  worker.registerFunction("math::add", ({ d }) => d, { input: pair });

  // @ts-expect-error The result has to be `{ c: number }`.
  worker.registerFunction("math::add", ({ a }) => ({ c: `${a}` }), {
    input: pair,
    output: z.object({ c: z.number() }),
  });

  // @ts-expect-error No schema.
  worker.registerFunction("math::add", () => 1, { input: { type: "object" } });
}

/** Without schemas a handler says what it takes. */
export function plain(): void {
  worker.registerFunction("a::b", ({ a, b }: Pair): Sum => ({ c: a + b }));
  worker.registerFunction("a::b", (payload) => same<Json>()(payload));
  worker.registerFunction("a::b", () => {});
  worker.registerFunction("web::quote", { url: "https://api.example.com" });
}

/** Interfaces are accepted wherever JSON is passed in. */
export async function interfaces(p: Pair, route: Route, context: CallContext): Promise<void> {
  worker.registerFunction("a::b", () => {}, { metadata: p, request_format: route });
  worker.registerTrigger({ type: "http", function_id: "a::b", config: route, metadata: p });
  await worker.trigger({ function_id: "a::b", payload: p, metadata: p });
  await worker.enqueue({ function_id: "a::b", payload: p });
  await worker.publish("orders", p);
  await worker.stream<Pair>("pairs").group("g").set("a", p);
  await worker.stream("pairs").group("g").send("typing", p);
  await worker.configuration<Pair>("c", { initial_value: p, schema: route });
  context.progress(p);
  new Logger().info("pair", p);
  throw new EngineError("bad", "Bad", { details: p });
}

/** The result of a call is unknown until the program says what it is. */
export async function results(): Promise<void> {
  const request = { function_id: "math::add", payload: { a: 1, b: 2 } };
  same<unknown>()(await worker.trigger(request));
  const sum: Sum = await worker.trigger(request);
  const other = await worker.trigger(request) as Sum;
  const third = await worker.trigger<Pair, Sum>(request);
  const parsed = z.object({ c: z.number() }).parse(await worker.trigger(request));
  console.log(sum.c + other.c + third.c + parsed.c);
  await worker.trigger({ function_id: "a::b", action: TriggerAction.Void() });

  // @ts-expect-error The result of an untyped call has no members.
  console.log((await worker.trigger(request)).c);

  // @ts-expect-error A payload of the wrong type.
  await worker.trigger<Pair, Sum>({ function_id: "math::add", payload: { a: "1", b: 2 } });

  // @ts-expect-error JSON has no symbols.
  worker.registerTrigger({ type: "http", function_id: "a::b", config: Symbol("x") });
}
