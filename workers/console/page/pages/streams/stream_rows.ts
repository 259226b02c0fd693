/**
 * Streams as `engine-stream` lists them, what they do per second, and what happens in a group.
 *
 * @module
 */
import { useRef } from "preact/hooks";
import type { Json } from "../../../../../sdk/typescript/wire/protocol.ts";
import { briefJson, type Tone } from "../../kit/mod.ts";
import { SampleWindow } from "../metrics/samples.ts";
import { type Sampled, useSampled } from "../metrics/use_sampled.ts";
import type { EntryChange, EntrySource } from "../state/entries.ts";

/** Samples of each stream: 5 minutes. */
const SAMPLES = 300;
/** The series of all streams together; no stream has this name. */
export const ALL = "";

/** The answer of `engine::stream::stats`. */
export interface StreamStats {
  readonly url: string;
  readonly connections: number;
  readonly connections_max: number;
  readonly subscriptions: number;
  /** Since the engine started, as are all of them. */
  readonly events: number;
  /** One event counts for each subscriber that got it. */
  readonly events_sent: number;
  /** Clients that were closed because they read too slowly. */
  readonly closed_slow: number;
  readonly streams: readonly {
    readonly stream_name: string;
    readonly subscriptions: number;
    readonly events: number;
  }[];
}

/** A stream of `stream::list_all`. */
export interface ListedStream {
  readonly id: string;
  readonly groups: readonly string[];
}

/** A stream of the list. */
export interface StreamRow {
  readonly name: string;
  /** Groups with items; `null`: not known. */
  readonly groups: number | null;
  readonly subscriptions: number;
}

/** What is charted. */
export type StreamField = "events_per_s" | "sent_per_s";

/** Samples of all streams, made from one answer after the other. */
export class StreamSamples {
  readonly window = new SampleWindow<StreamField>(SAMPLES, {
    events_per_s: null,
    sent_per_s: null,
  });
  #last: { readonly at_ms: number; readonly stats: StreamStats } | undefined;

  /** Adds an answer. */
  add(at_ms: number, stats: StreamStats): void {
    const last = this.#last;
    this.#last = { at_ms, stats };
    if (!last || at_ms <= last.at_ms) return;
    const seconds = (at_ms - last.at_ms) / 1_000;
    const before = new Map(last.stats.streams.map((each) => [each.stream_name, each.events]));
    const sent_per_s = perSecond(last.stats.events_sent, stats.events_sent, seconds);
    this.window.add(at_ms, [
      [ALL, { events_per_s: perSecond(last.stats.events, stats.events, seconds), sent_per_s }],
      ...stats.streams.map(({ stream_name, events }) =>
        [
          stream_name,
          { events_per_s: perSecond(before.get(stream_name) ?? 0, events, seconds) },
        ] as const
      ),
    ]);
  }
}

/** `null` for a total that began anew with its engine. */
function perSecond(before: number, now: number, seconds: number): number | null {
  return now < before ? null : (now - before) / seconds;
}

/** All streams by name: those with items, and those that are followed or had events. */
export function rowsOf(
  listed: readonly ListedStream[] | null,
  stats: StreamStats | undefined,
): readonly StreamRow[] {
  const rows = new Map<string, StreamRow>();
  for (const { id, groups } of listed ?? []) {
    rows.set(id, { name: id, groups: groups.length, subscriptions: 0 });
  }
  for (const { stream_name: name, subscriptions } of stats?.streams ?? []) {
    const groups = rows.get(name)?.groups ?? (listed === null ? null : 0);
    rows.set(name, { name, groups, subscriptions });
  }
  return [...rows.values()].sort((a, b) => a.name < b.name ? -1 : 1);
}

/** Whether every word of a search occurs in the name. */
export function matchesSearch({ name }: StreamRow, search: string): boolean {
  const text = name.toLowerCase();
  return search.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}

/** The numbers of all streams, and their samples, which are changed in place. */
export interface StreamsState extends Sampled<StreamStats> {
  readonly samples: StreamSamples;
}

/** Asks for the numbers once a second while a component is mounted. */
export function useStreamStats(): StreamsState {
  const samples = useRef<StreamSamples>();
  samples.current ??= new StreamSamples();
  const asked = useSampled<StreamStats>(
    "engine::stream::stats",
    (stats, at_ms) => samples.current!.add(at_ms, stats),
  );
  return { ...asked, samples: samples.current };
}

/** A group of a stream. */
export interface Group {
  readonly stream_name: string;
  readonly group_id: string;
}

/** An event as a trigger of type `stream` fires it. */
export interface StreamEvent {
  readonly timestamp: number;
  readonly id: string | null;
  readonly event:
    | { readonly type: "create" | "update" | "delete"; readonly data: Json }
    | { readonly type: "event"; readonly event: { readonly type: string; readonly data: Json } };
}

/** The items of a group, as entries. */
export function itemSource({ stream_name, group_id }: Group): EntrySource<StreamEvent> {
  const place = { stream_name, group_id };
  return {
    function_id: "stream::list_items",
    payload: place,
    trigger: { type: "stream", config: place },
    readPage: (answer) => {
      const { items, cursor } = answer as unknown as {
        readonly items: readonly { readonly id: string; readonly data: Json }[];
        readonly cursor?: string;
      };
      const entries = items.map(({ id, data }) => ({ key: id, value: data, version: null }));
      return { entries, ...cursor !== undefined && { cursor } };
    },
    changeIn,
  };
}

const CHANGES = {
  create: "state:created",
  update: "state:updated",
  delete: "state:deleted",
} as const;

/** What an event does to an item; nothing for one that was only sent. */
function changeIn({ id, event }: StreamEvent): EntryChange | undefined {
  if (id === null || event.type === "event") return undefined;
  return { event_type: CHANGES[event.type], key: id, new_value: event.data };
}

/** An event in words. */
export interface EventView {
  /** Such as `create`, or the name of a sent event. */
  readonly word: string;
  readonly tone: Tone;
  readonly data: Json;
  readonly brief: string;
}

/** How an event is shown. */
export function eventView({ event }: StreamEvent): EventView {
  if (event.type === "event") {
    const { type, data } = event.event;
    return { word: type, tone: "accent", data, brief: briefJson(data) };
  }
  const tone = event.type === "create" ? "ok" : event.type === "update" ? "info" : "bad";
  return { word: event.type, tone, data: event.data, brief: briefJson(event.data) };
}
