/**
 * What an engine offers to the others: functions, trigger types, and triggers of types that every
 * engine provides.
 *
 * Each is one frame and the frame that takes it back. Functions of built-in workers stay here:
 * every engine has them, except those of built-ins that are shared because they run at one engine
 * only, and what an engine offers under its own name. What came from another engine is not passed
 * on: every engine gets it from its owner.
 *
 * @module
 */
import { DEFAULT_NAMESPACE, type Json } from "../../sdk/typescript/wire/protocol.ts";
import type { TriggerTimes } from "./trigger_times.ts";
import type { Directory, FunctionView, TriggerTypeView, TriggerView } from "../ports/directory.ts";

/** Types that every engine provides: their triggers fire at each of them. */
export const EVERYWHERE: ReadonlySet<string> = new Set([
  "http",
  "websocket",
  "subscribe",
  "log",
  "trace",
]);

/** Frames by the frames that take them back, in the order in which they are sent. */
export type Exports = ReadonlyMap<string, string>;

/** What the exports are made of. */
export interface ExportSources {
  readonly directory: Pick<Directory, "functions" | "triggerTypes" | "triggers">;
  /** Whether a connection leads to another engine. */
  isEngine(worker_id: string): boolean;
  /** Whether a built-in worker runs at one engine only, and that is this one. */
  isShared(builtin: string): boolean;
  /** Namespace whose functions are offered whatever registers them. */
  readonly namespace: string;
  readonly times: TriggerTimes;
}

/** Everything that this engine offers now. */
export function exportsOf(sources: ExportSources): Exports {
  const { directory } = sources;
  const exports = new Map<string, string>();
  const add = (undo: unknown, frame: unknown): void => {
    exports.set(JSON.stringify(undo), JSON.stringify(frame));
  };
  for (const view of directory.functions()) {
    if (isOffered(view, sources)) addFunction(view, add);
  }
  for (const view of directory.triggerTypes()) {
    if (isOffered(view, sources)) addType(view, add);
  }
  const ids = new Set<string>();
  for (const view of directory.triggers()) {
    if (!isEverywhere(view) || sources.isEngine(view.worker_id)) continue;
    ids.add(view.id);
    addTrigger(view, sources.times.of(view.id), add);
  }
  sources.times.keep(ids);
  return exports;
}

/** Frames that make what another engine has (`before`) into `after`. */
export function* changes(before: Exports, after: Exports): Generator<string> {
  for (const [undo, frame] of after) if (before.get(undo) !== frame) yield frame;
  // In the other order, so that a trigger ends before its function.
  for (const undo of [...before.keys()].reverse()) if (!after.has(undo)) yield undo;
}

type Add = (undo: unknown, frame: unknown) => void;

function isOffered(
  { worker_id, worker_name, builtin, namespace }: FunctionView | TriggerTypeView,
  { isEngine, isShared, namespace: own }: ExportSources,
): boolean {
  if (namespace === own) return true;
  return builtin ? isShared(worker_name) : !isEngine(worker_id);
}

function isEverywhere({ trigger_type, trigger_namespace }: TriggerView): boolean {
  return trigger_namespace === DEFAULT_NAMESPACE && EVERYWHERE.has(trigger_type);
}

function addFunction(view: FunctionView, add: Add): void {
  const { function_id: id, description, request_schema, response_schema, metadata } = view;
  const namespace = otherNamespace(view.namespace);
  // A built-in worker checks its payloads itself, with errors of its own.
  const request_format = view.builtin ? undefined : request_schema;
  const formats = { request_format, response_format: response_schema };
  const about = { id, namespace, description, ...formats, metadata };
  add({ type: "unregisterfunction", id, namespace }, { type: "registerfunction", ...about });
}

function addType(view: TriggerTypeView, add: Add): void {
  const { id, description, configuration_schema, request_schema } = view;
  const namespace = otherNamespace(view.namespace);
  const formats: Record<string, Json | undefined> = {
    trigger_request_format: configuration_schema,
    call_request_format: request_schema,
  };
  const about = { id, namespace, description, ...formats };
  add({ type: "unregistertriggertype", id, namespace }, { type: "registertriggertype", ...about });
}

/** The time is for the link there, which takes it before the router reads the message. */
function addTrigger(view: TriggerView, created_at_ms: number, add: Add): void {
  const { id, trigger_type, function_id, config, metadata } = view;
  const namespace = otherNamespace(view.namespace);
  const about = { id, trigger_type, function_id, namespace, config, metadata, created_at_ms };
  add({ type: "unregistertrigger", id, trigger_type }, { type: "registertrigger", ...about });
}

/** Default namespaces are omitted. */
function otherNamespace(namespace: string): string | undefined {
  return namespace === DEFAULT_NAMESPACE ? undefined : namespace;
}
