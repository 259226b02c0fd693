/**
 * The functions of one worker.
 *
 * @module
 */
import type { VNode } from "preact";
import { Empty, Failed, Link, link, Skeleton, Table, useQuery, useShell } from "../../kit/mod.ts";

interface Offered {
  readonly function_id: string;
  readonly namespace: string;
  readonly description?: string;
}

/** See the module. */
export function WorkerFunctions({ name }: { name: string }): VNode {
  const { router } = useShell();
  const { status, items, error, retry } = useQuery<Offered>({
    function_id: "engine::functions::list",
    payload: { worker: name, include_internal: true },
    items: "functions",
    key: ["namespace", "function_id"],
  }, [{ type: "engine::functions-available" }]);
  if (status === "loading") return <Skeleton rows={5} />;
  if (status === "failed") {
    return <Failed what="The functions cannot be listed" error={error} retry={retry} />;
  }
  const address = ({ namespace, function_id }: Offered) =>
    link("/functions", namespace, function_id);
  return (
    <div class="bleed">
      <Table
        label={`Functions of ${name}`}
        orderName="by"
        order={{ column: "id", descending: false }}
        items={items}
        keyOf={({ namespace, function_id }) => `${namespace} ${function_id}`}
        onOpen={(item) => router.go(address(item))}
        empty={
          <Empty icon="functions" title="It offers no functions now">
            <p>Functions show here as soon as the worker registers them.</p>
          </Empty>
        }
        columns={[
          {
            id: "id",
            title: "Function",
            width: "minmax(160px, 1fr)",
            sort: ({ function_id }) => function_id,
            cell: (item) => <Link to={address(item)} class="cut mono">{item.function_id}</Link>,
          },
          {
            id: "description",
            title: "Description",
            width: "minmax(120px, 1fr)",
            hide: "phone",
            cell: ({ description }) => <span class="cut quiet">{description}</span>,
          },
        ]}
      />
    </div>
  );
}
