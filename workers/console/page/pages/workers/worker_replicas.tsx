/**
 * The copies of a worker, one line each.
 *
 * @module
 */
import type { VNode } from "preact";
import { Badge, Dot, formatBytes, formatPercent, NONE, Panel, Since } from "../../kit/mod.ts";
import { toneOf, type WorkerRow } from "./worker_rows.ts";

/** See the module. */
export function WorkerReplicas({ row }: { row: WorkerRow }): VNode {
  const replicas = row.status?.replicas ?? [];
  return (
    <Panel title="Replicas" flush>
      <table class="plain-table">
        <thead>
          <tr>
            <th>Number</th>
            <th>State</th>
            <th class="end">Pid</th>
            <th class="end">Up</th>
            <th class="end">Memory</th>
            <th class="end">CPU</th>
            <th class="end">Restarts</th>
          </tr>
        </thead>
        <tbody>
          {replicas.map((replica) => (
            <tr key={replica.number}>
              <td>{replica.number}</td>
              <td>
                <Badge tone={toneOf(replica.state)}>{replica.state}</Badge>
              </td>
              <td class="end">{replica.pid ?? NONE}</td>
              <td class="end">
                {replica.started_at_ms === null ? NONE : <Since ms={replica.started_at_ms} />}
              </td>
              <td class="end">{formatBytes(replica.memory_bytes)}</td>
              <td class="end">{formatPercent(replica.cpu_percent)}</td>
              <td class="end">{replica.restarts}</td>
            </tr>
          ))}
          {replicas.length === 0 && row.lines.map((line, index) => (
            <tr key={line.id}>
              <td>{index + 1}</td>
              <td>
                <Dot tone={toneOf(line.status)} label={line.status} /> {line.status}
              </td>
              <td class="end">{NONE}</td>
              <td class="end">
                <Since ms={line.connected_at_ms} />
              </td>
              <td class="end">{NONE}</td>
              <td class="end">{NONE}</td>
              <td class="end">{NONE}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Panel>
  );
}
