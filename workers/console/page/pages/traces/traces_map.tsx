/**
 * The service map of what happened lately.
 *
 * @module
 */
import type { VNode } from "preact";
import { useMemo } from "preact/hooks";
import { TRACE_BATCH_MS } from "./trace_summary.ts";
import {
  Empty,
  Failed,
  formatSpan,
  Page,
  Search,
  Segments,
  Skeleton,
  useQuery,
  useQueryMember,
} from "../../kit/mod.ts";
import { readServiceMap, workersOnly } from "./service_map.ts";
import { ServiceMapView } from "./service_map_view.tsx";
import { useTypedMember } from "../../kit/settled.ts";

const LEVELS = [
  { value: "", label: "Workers" },
  { value: "functions", label: "Functions" },
];

/** The page's content while the map is shown. */
export function TracesMap({ views }: { views: VNode }): VNode {
  const [level, setLevel] = useQueryMember("level");
  const [typed, type, text] = useTypedMember("text");
  const query = useQuery(
    { function_id: "engine::traces::map" },
    [{ type: "trace", config: { batch_ms: 2 * TRACE_BATCH_MS } }],
  );
  const whole = useMemo(() => readServiceMap(query.value), [query.value]);
  const map = useMemo(() => level === "functions" ? whole : workersOnly(whole), [whole, level]);
  const filters = (
    <>
      <Search label="Find in the map" value={typed} onChange={type} />
      <Segments label="Detail" value={level} choices={LEVELS} onChange={setLevel} />
      {query.status === "ready" && whole.windowMs > 0 && (
        <span class="quiet">
          Of the last {formatSpan(whole.windowMs)}
          {whole.sampled && ", from the newest spans"}
        </span>
      )}
    </>
  );
  return (
    <Page title="Traces" fill actions={views} filters={filters}>
      {query.status === "loading" && <Skeleton rows={8} />}
      {query.status === "failed" && (
        <Failed what="The map cannot be made" error={query.error} retry={query.retry} />
      )}
      {query.status === "ready" && (
        <ServiceMapView
          map={map}
          text={text}
          empty={text === ""
            ? (
              <Empty icon="flow" title="Nobody called anybody yet">
                The map grows with the first calls between workers.
              </Empty>
            )
            : <Empty icon="filter" title={`Nothing in the map is called “${text}”`} />}
        />
      )}
    </Page>
  );
}
