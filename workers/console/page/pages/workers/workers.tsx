/**
 * The page that opens first: every worker, how it fares and what it uses; one of them in detail.
 *
 * @module
 */
import type { VNode } from "preact";
import { useMemo } from "preact/hooks";
import type { WorkerStatus } from "../../../../../engine/ports/supervision.ts";
import {
  type ConsolePage,
  Empty,
  Failed,
  type Found,
  link,
  Page,
  type PageProps,
  Search,
  Segments,
  Skeleton,
  Split,
  useQuery,
  useQueryMember,
  useShell,
} from "../../kit/mod.ts";
import { type ConnectedWorker, fitsSearch, type WorkerRow, workerRows } from "./worker_rows.ts";
import { useWorkerGauges } from "./use_worker_gauges.ts";
import { WorkerDetail } from "./worker_detail.tsx";
import { WorkerTable } from "./worker_table.tsx";

const SUPERVISED = { function_id: "engine::supervisor::list", items: "workers", key: ["name"] };
const LINES = { function_id: "engine::workers::list", items: "workers", key: ["id"] };
const CHANGES = [{ type: "engine::supervisor-changed" }, { type: "engine::workers-available" }];

const SHOWN = [
  { value: "", label: "All" },
  { value: "managed", label: "Managed" },
  { value: "builtin", label: "Built in" },
  { value: "external", label: "External" },
  { value: "trouble", label: "Trouble" },
];

/** See the module. */
export const workersPage: ConsolePage = {
  path: "/workers",
  title: "Workers",
  icon: "workers",
  group: "run",
  key: "w",
  view: Workers,
  onPhones: true,
  finders: [
    { kind: "Worker", query: SUPERVISED, on: CHANGES, find: (item) => found(item as never) },
  ],
};

function Workers({ rest }: PageProps): VNode {
  const { router } = useShell();
  const supervised = useQuery<WorkerStatus>(SUPERVISED, CHANGES);
  const lines = useQuery<ConnectedWorker>(LINES, CHANGES);
  const [search, setSearch] = useQueryMember("q");
  const [shown, setShown] = useQueryMember("show");
  const gauges = useWorkerGauges();
  const all = useMemo(
    () => workerRows(supervised.items, lines.items),
    [supervised.items, lines.items],
  );
  const rows = useMemo(
    () => all.filter((row) => isShown(row, shown) && fitsSearch(row, search)),
    [all, shown, search],
  );
  const key = rest[0] ?? null;
  const open = key === null ? undefined : all.find((row) => row.key === key);
  const go = (to: string | null) => {
    const query = { q: search, show: shown, sort: router.route.value.query.get("sort") };
    router.go(to === null ? link("/workers", query) : link("/workers", to, query));
  };
  const failed = [supervised, lines].find(({ status }) => status === "failed");
  const isLoading = supervised.status === "loading" || lines.status === "loading";
  return (
    <Page
      fill
      title="Workers"
      count={isLoading ? undefined : countWords(all)}
      filters={
        <>
          <Search label="Search workers" value={search} onChange={setSearch} />
          <Segments label="Show" value={shown} choices={SHOWN} onChange={setShown} />
        </>
      }
    >
      <Split
        detail={key !== null && !isLoading && (
          <WorkerDetail
            name={key}
            row={open}
            gauges={gauges}
            onClose={() => go(null)}
          />
        )}
      >
        {failed && all.length === 0
          ? <Failed what="The workers cannot be listed" error={failed.error} retry={failed.retry} />
          : isLoading
          ? <Skeleton rows={9} />
          : (
            <WorkerTable
              rows={rows}
              gauges={gauges.gauges}
              open={key}
              onOpen={(row) => go(row.key)}
              empty={<Nobody isFiltered={all.length > 0} />}
            />
          )}
      </Split>
    </Page>
  );
}

function Nobody({ isFiltered }: { isFiltered: boolean }): VNode {
  if (isFiltered) {
    return (
      <Empty icon="filter" title="No worker fits">
        <p>Search for less, or show all of them.</p>
      </Empty>
    );
  }
  return (
    <Empty icon="workers" title="No workers yet">
      <p>Add a directory with a worker in it, or start a program that uses the SDK.</p>
      <pre>engine worker add ./workers/math</pre>
    </Empty>
  );
}

function isShown(row: WorkerRow, shown: string): boolean {
  if (shown === "trouble") return isTrouble(row);
  return shown === "" || row.kind === shown;
}

function isTrouble({ state, restarts, reason, kind }: WorkerRow): boolean {
  if (state === "failed" || state === "waiting" || state === "draining") return true;
  return restarts > 0 || (kind === "managed" && reason !== null && state !== "stopped");
}

function countWords(rows: readonly WorkerRow[]): string {
  const up = rows.filter(({ state }) => state === "ready" || state === "connected").length;
  const failed = rows.filter(({ state }) => state === "failed").length;
  return `${up} of ${rows.length} up${failed > 0 ? `, ${failed} failed` : ""}`;
}

function found({ name, state, kind }: WorkerStatus): Found {
  return { text: name, hint: kind === "builtin" ? "built in" : state, to: link("/workers", name) };
}
