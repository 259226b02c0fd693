/**
 * The Traces page: the newest traces, the map of who calls whom, and below it single traces.
 *
 * @module
 */
import type { VNode } from "preact";
import { type ConsolePage, Page, type PageProps, Segments, useQueryMember } from "../../kit/mod.ts";
import { TraceView } from "./trace.tsx";
import { TraceFilters, TraceList, useTraceFilter } from "./traces_list.tsx";
import { TracesMap } from "./traces_map.tsx";

const VIEWS = [
  { value: "", label: "List" },
  { value: "map", label: "Service map" },
];

/** `/traces`, `/traces/<trace id>`. */
export const tracesPage: ConsolePage = {
  path: "/traces",
  title: "Traces",
  icon: "traces",
  group: "watch",
  key: "r",
  onPhones: true,
  view: Traces,
};

function Traces({ rest }: PageProps): VNode {
  const [trace_id] = rest;
  return trace_id === undefined ? <Overview /> : <TraceView key={trace_id} trace_id={trace_id} />;
}

function Overview(): VNode {
  const [view, setView] = useQueryMember("view");
  const views = <Segments label="View" value={view} choices={VIEWS} onChange={setView} />;
  return view === "map" ? <TracesMap views={views} /> : <Listed views={views} />;
}

function Listed({ views }: { views: VNode }): VNode {
  const filter = useTraceFilter();
  return (
    <Page title="Traces" fill actions={views} filters={<TraceFilters filter={filter} />}>
      <TraceList filter={filter} />
    </Page>
  );
}
