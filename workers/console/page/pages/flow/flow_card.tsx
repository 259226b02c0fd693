/**
 * A card of the Flow page, and its detail view.
 *
 * @module
 */
import type { VNode } from "preact";
import {
  Button,
  Detail,
  Dot,
  formatCount,
  formatDuration,
  formatRate,
  Icon,
  type IconName,
  Link,
  link,
} from "../../kit/mod.ts";
import { CARD, type FlowCard, type FlowEdge, type FlowGraph, type FlowRow } from "./flow_graph.ts";
import type { EdgeTraffic, FunctionRate } from "./flow_traffic.ts";

const ICONS: Readonly<Record<FlowCard["kind"], IconName>> = {
  worker: "workers",
  trigger: "triggers",
  other: "external",
};

/** The content of a card. */
export function FlowCardView({ card, edges, traffic, rates }: {
  card: FlowCard;
  edges: readonly FlowEdge[];
  traffic: ReadonlyMap<string, EdgeTraffic>;
  rates: ReadonlyMap<string, FunctionRate>;
}): VNode {
  const rateOf = (row: FlowRow): number => {
    if (card.kind === "worker") return rates.get(row.functionId ?? "")?.callsPerS ?? 0;
    const edge = edges.find(({ from }) => from.row === row.id);
    return edge === undefined ? 0 : traffic.get(edge.id)?.callsPerS ?? 0;
  };
  const failing = (row: FlowRow): boolean =>
    card.kind === "worker" && (rates.get(row.functionId ?? "")?.errorsPerS ?? 0) > 0;
  return (
    <span class={`flow-card ${card.kind}`}>
      <span class="flow-head" style={{ height: `${CARD.head}px` }}>
        <Icon name={ICONS[card.kind]} size={14} />
        <b class="cut">{card.title}</b>
      </span>
      {card.rows.map((row) => {
        const rate = rateOf(row);
        return (
          <span key={row.id} class="flow-row" style={{ height: `${CARD.row}px` }}>
            <span class="cut">{shortOf(card, row)}</span>
            {failing(row) && <Dot tone="bad" label="Fails" />}
            <span class={`num flow-rate ${rate > 0 ? "busy" : ""}`}>{formatRate(rate)}</span>
          </span>
        );
      })}
      {card.hidden > 0 && (
        <span class="flow-row quiet" style={{ height: `${CARD.row}px` }}>
          {formatCount(card.hidden)} more
        </span>
      )}
    </span>
  );
}

/** The detail view of a card. */
export function CardDetail({ card, graph, rates, onFocus, onClose }: {
  card: FlowCard;
  graph: FlowGraph;
  rates: ReadonlyMap<string, FunctionRate>;
  onFocus: (worker: string) => void;
  onClose: () => void;
}): VNode {
  const titles = new Map(graph.cards.map(({ id, title }) => [id, title]));
  const into = graph.edges.filter(({ to, from }) => to.card === card.id && from.card !== card.id);
  const outOf = graph.edges.filter(({ to, from }) => from.card === card.id && to.card !== card.id);
  const isWorker = card.kind === "worker";
  return (
    <Detail title={card.title} label={`${card.kind} ${card.title}`} onClose={onClose}>
      {isWorker && (
        <div class="row-flex">
          <Link class="button" to={link("/workers", card.title)}>Show the worker</Link>
          <Button onPress={() => onFocus(card.title)}>Only this and its neighbours</Button>
        </div>
      )}
      {card.kind === "trigger" && (
        <div class="row-flex">
          <Link class="button" to={link("/triggers", { type: card.title })}>Show the triggers</Link>
        </div>
      )}
      {card.rows.length > 0 && (
        <section class="detail-part">
          <h3>{isWorker ? "Functions" : "Triggers"}</h3>
          <ul class="flow-list">
            {card.rows.map((row) => (
              <FlowListRow key={row.id} row={row} rate={rates.get(row.functionId ?? "")} />
            ))}
          </ul>
          {card.hidden > 0 && (
            <Link to={link("/functions", { text: card.title })}>
              {`${formatCount(card.hidden)} more on the Functions page`}
            </Link>
          )}
        </section>
      )}
      <Neighbours title="Called from" cards={into.map(({ from }) => from.card)} titles={titles} />
      <Neighbours title="Calls" cards={outOf.map(({ to }) => to.card)} titles={titles} />
    </Detail>
  );
}

function FlowListRow({ row, rate }: { row: FlowRow; rate: FunctionRate | undefined }): VNode {
  return (
    <li>
      <span class="cut">
        {row.functionId === null
          ? row.label
          : <Link to={link("/functions", row.functionId)}>{row.label}</Link>}
      </span>
      <span class="num quiet">
        {rate === undefined
          ? "idle"
          : `${formatRate(rate.callsPerS)} · p99 ${formatDuration(rate.p99Ms)}`}
      </span>
    </li>
  );
}

function Neighbours({ title, cards, titles }: {
  title: string;
  cards: readonly string[];
  titles: ReadonlyMap<string, string>;
}): VNode | null {
  const names = [...new Set(cards)].map((id) => titles.get(id) ?? id);
  if (names.length === 0) return null;
  return (
    <section class="detail-part">
      <h3>{title}</h3>
      <p>{names.join(", ")}</p>
    </section>
  );
}

/** The function's name without its group, when the group is the name of the worker. */
function shortOf(card: FlowCard, { label }: FlowRow): string {
  const group = `${card.title}::`;
  return card.kind === "worker" && label.startsWith(group) ? label.slice(group.length) : label;
}
