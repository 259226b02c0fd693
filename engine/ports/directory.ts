/**
 * Read-only views of the core's tables, built on request.
 *
 * @module
 */
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";

/** A function with at least one live replica; described by its newest registration. */
export interface FunctionView {
  readonly function_id: string;
  readonly namespace: string;
  /** Id of the connection of the newest registration. */
  readonly worker_id: string;
  readonly worker_name: string;
  readonly description?: string;
  readonly request_schema?: Json;
  readonly response_schema?: Json;
  readonly metadata?: Json;
  /** How it is requested, of a function whose implementation is a URL: PROTOCOL 2.2. */
  readonly invocation?: JsonObject;
  /** `metadata.internal` is `true`. */
  readonly internal: boolean;
  /** Registered by a built-in worker. */
  readonly builtin: boolean;
  /** Name of the other engine whose workers offer it; absent if a worker here does. */
  readonly engine?: string;
  /** Connections that registered it, other engines first, the newest last. */
  readonly worker_ids: readonly string[];
  /**
   * Names of the workers that offer it, if they differ and `engine.shared_functions` does not list
   * it; otherwise absent.
   */
  readonly contenders?: readonly string[];
}

/** A trigger type with a live provider. */
export interface TriggerTypeView {
  readonly id: string;
  readonly namespace: string;
  readonly worker_id: string;
  readonly worker_name: string;
  readonly description: string;
  readonly configuration_schema?: Json;
  readonly request_schema?: Json;
  readonly builtin: boolean;
  /** Name of the other engine whose worker provides it; absent for one here. */
  readonly engine?: string;
  /** Number of triggers of the type, parked ones included. */
  readonly instance_count: number;
}

/** A trigger, live or parked. */
export interface TriggerView {
  readonly id: string;
  readonly trigger_type: string;
  readonly trigger_namespace: string;
  readonly function_id: string;
  readonly namespace: string;
  readonly config: Json;
  readonly metadata?: Json;
  /** `offered`: its provider received it and did not refuse. */
  readonly state: "parked" | "offered" | "refused";
  /** Why it does not fire, and what to do; `null` while it is offered. */
  readonly reason: string | null;
  /** Connection that registered it. */
  readonly worker_id: string;
  readonly worker_name: string;
  /** Name of the other engine whose worker registered it; absent for one here. */
  readonly engine?: string;
}

/** A connection. */
export interface WorkerView {
  readonly id: string;
  /** As announced; `null` before. */
  readonly name: string | null;
  readonly namespace: string | null;
  readonly description: string | null;
  readonly version: string | null;
  readonly runtime: string | null;
  readonly os: string | null;
  readonly pid: number | null;
  readonly isolation: string | null;
  readonly launch_id: string | null;
  readonly status: "connected" | "draining";
  /** It has left a ping unanswered: other workers get its calls. */
  readonly suspect: boolean;
  readonly announced: boolean;
  readonly builtin: boolean;
  /** Name of the engine, if the connection leads to another one; absent for a worker. */
  readonly engine?: string;
  /** A command line of the engine's own user on this machine: may manage workers. */
  readonly operator: boolean;
  readonly function_count: number;
  readonly trigger_count: number;
  /** Milliseconds since 1970. */
  readonly connected_at_ms: number;
  /** Calls that it executes. */
  readonly active_invocations: number;
  /** Bytes that its peer has not received yet. */
  readonly queued_bytes: number;
  readonly ip_address: string | null;
}

/** Whether a function may be seen. */
export type FunctionFilter = (function_id: string, namespace: string) => boolean;

/** The current registrations. Lists are in no particular order. */
export interface Directory {
  functions(): FunctionView[];
  /**
   * The functions behind the given id and namespace, in that order. Each view is to be read before
   * the next one is taken.
   */
  functionsAfter(function_id: string, namespace: string): Iterable<FunctionView>;
  /** Equal for equal sets of function ids, at any two times. */
  functionsMark(): string;
  function(namespace: string, function_id: string): FunctionView | undefined;
  /** Whether the metadata of a function hides it; `false` for an unknown one. */
  isInternal(namespace: string, function_id: string): boolean;
  /**
   * Which functions a connection may see and call; `undefined`: all, as where access rules do not
   * limit it.
   */
  visibleTo(worker_id: string | undefined): FunctionFilter | undefined;
  /** The functions of built-in workers and of the engine itself, without reading all others. */
  builtinFunctions(): FunctionView[];
  /** The functions that a connection registered. */
  functionsOf(worker_id: string): FunctionView[];
  triggerTypes(): TriggerTypeView[];
  triggerType(namespace: string, id: string): TriggerTypeView | undefined;
  triggers(): TriggerView[];
  trigger(id: string): TriggerView | undefined;
  /** All connections, including those without an announcement. */
  workers(): WorkerView[];
  worker(id: string): WorkerView | undefined;
}

/** Namespace of what one engine of a cluster offers to the others, before its life. */
export const ENGINE_NAMESPACE = "engine@";

/** The link to another engine. */
export interface EngineLinkView {
  /** Since it was opened. */
  readonly age_ms: number;
  /** Time there and back; `null` before the first ping. */
  readonly rtt_ms: number | null;
  /** Calls sent there since it was opened. */
  readonly calls_out: number;
  /** Calls received from there. */
  readonly calls_in: number;
  /** Bytes sent there since it was opened. */
  readonly bytes_out: number;
  /** Bytes received from there. */
  readonly bytes_in: number;
  /** Bytes that wait to be sent. */
  readonly queued_bytes: number;
}

/** An engine of the cluster. */
export interface EngineView {
  /** Of its start; never used again. */
  readonly life: string;
  /** Need not be unique. */
  readonly name: string;
  /** Of its program. */
  readonly version: string;
  /** `here`: this engine. */
  readonly state: "here" | "linked" | "draining";
  /** Whether it keeps the state of the cluster. */
  readonly keeper: boolean;
  /** `null` for this engine. */
  readonly link: EngineLinkView | null;
}

/** Times until the log of the state had acknowledged a message. */
export interface AppendTimesView {
  /** Upper bounds in seconds, ascending. */
  readonly bounds: readonly number[];
  /** One more than bounds: the last has everything above. */
  readonly counts: readonly number[];
  /** Of all, in seconds. */
  readonly sum: number;
}

/** The log of the cluster's state, as one engine sees it. */
export interface ClusterLogView {
  /** Where it is. */
  readonly kind: "jetstream" | "postgres";
  /** Copies that JetStream keeps; `null`: the database decides. */
  readonly copies: number | null;
  /** Whether a log that may lose what it acknowledged is refused. */
  readonly require_sync: boolean;
  /** Number of the last message that this engine has; `null`: the log was not opened yet. */
  readonly applied: number | null;
  /** Messages that the log had and this engine lacked when it last looked; `null`: it never did. */
  readonly behind: number | null;
  /** Since that look. */
  readonly seen_ms_ago: number | null;
  /** Of the messages that no snapshot has replaced yet. */
  readonly bytes: number;
  /** Why the log cannot be used now; `null`: it can. */
  readonly problem: string | null;
}

/** A row of the answer of `engine::cluster::engines`. */
export interface EngineRow extends EngineView {
  /** Only where it was asked for; `null`: it did not answer, or keeps no state. */
  readonly log?: ClusterLogView | null;
  /** Built-in workers of its configuration, where asked for; `null`: it did not say. */
  readonly builtins?: readonly string[] | null;
}

/** The answer of `engine::cluster::engines`; older engines leave out what may be absent. */
export interface ClusterView {
  /** Its name; `null`: the engine is alone. */
  readonly cluster: string | null;
  /** Whether NATS is reached. */
  readonly connected: boolean;
  /** Why it is not, if that is known. */
  readonly problem?: string | null;
  /** See {@linkcode Engines.keeper}. */
  readonly keeper?: string | null;
  /** See {@linkcode Engines.takeovers}. */
  readonly takeovers?: number;
  /** See {@linkcode Engines.log}. */
  readonly log?: ClusterLogView | null;
  /** Built-in workers of this engine's configuration; only with `local`. */
  readonly builtins?: readonly string[];
  /** How often links have ended, by reason. */
  readonly link_ends?: Readonly<Record<string, number>>;
  /** The one that answers first. */
  readonly engines: readonly EngineRow[];
}

/** The place of a trigger among equal ones: by time, then by id; the larger is newer. */
export interface TriggerOrder {
  /** Milliseconds since 1970. */
  readonly at: number;
  /** Unique in the cluster. */
  readonly id: string;
}

/** The engines of the cluster, this one first. */
export interface Engines {
  /** Name of the cluster. */
  readonly cluster: string;
  /** Life of this engine. */
  readonly life: string;
  /** Whether what joins the engines can be reached now. */
  readonly isConnected: boolean;
  /** Why it was not reached last; `null`: it is, or it was and nothing is known. */
  readonly problem: string | null;
  /** Life of the engine that keeps the state, perhaps one without a link; `null`: none is known. */
  readonly keeper: string | null;
  /** How often this engine became the keeper of the state. */
  readonly takeovers: number;
  /** The log of the state; `null`: each engine keeps its own. */
  readonly log: ClusterLogView | null;
  /** How long it took to acknowledge what this engine appended; `null`: it was not opened yet. */
  readonly appends: AppendTimesView | null;
  /** This engine first, then the others. */
  list(): EngineView[];
  /** How often links have ended, by reason. */
  ends(): ReadonlyMap<string, number>;
  /** The place of a trigger, by its id here; the same at all engines. */
  orderOf(trigger_id: string): TriggerOrder;
}
