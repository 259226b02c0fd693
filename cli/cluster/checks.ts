/**
 * `engine doctor` on a cluster: NATS, versions, built-ins, the keeper, its log, slow links.
 *
 * @module
 */
import type { ClusterView, EngineRow } from "../../engine/mod.ts";
import type { DoctorCheck } from "../commands/engine/doctor_checks.ts";
import { count, printable, renderBytes, renderShortDuration } from "../render.ts";
import { ALONE, keeperLine, whyAway } from "./view.ts";

/** A log that was not seen for longer is not followed. */
const SEEN_MS_MAX = 5_000;
/** Messages that an engine may lack without a word. */
const BEHIND_MAX = 1_000;
/** Bytes that may wait for a link. */
const QUEUED_BYTES_MAX = 1024 * 1024;
const COPIES_MIN = 3;

/** The checks; one for an engine that is alone. */
export function checkCluster(view: ClusterView): DoctorCheck[] {
  if (view.cluster === null) return [check("cluster", "ok", ALONE, null)];
  return [
    checkNats(view),
    checkVersions(view),
    checkBuiltins(view),
    ...view.log ? [checkKeeper(view), checkLog(view), checkDurability(view)] : [],
    checkLinks(view),
  ];
}

function check(
  name: string,
  status: DoctorCheck["status"],
  message: string,
  remedy: string | null,
  measured: number | null = null,
): DoctorCheck {
  return { name, status, measured, message: printable(message), remedy };
}

function checkNats(view: ClusterView): DoctorCheck {
  const { cluster, connected, engines } = view;
  const others = engines.length - 1;
  if (!connected) {
    const message = `NATS of cluster ${cluster} cannot be reached${
      whyAway(view)
    }; calls of workers here go on`;
    const remedy = "Start its nodes, or correct engine.cluster and restart this engine";
    return check("cluster", "fail", message, remedy, others);
  }
  const message = `Cluster ${cluster} links this engine to ${count(others, "other engine")}`;
  if (others > 0) return check("cluster", "ok", message, null, others);
  const remedy = "Start the others with the same name and NATS service in engine.cluster";
  return check("cluster", "warn", message, remedy, others);
}

function checkVersions({ engines }: ClusterView): DoctorCheck {
  const versions = new Set(engines.map(({ version }) => version));
  const name = "cluster versions";
  if (versions.size === 1) return check(name, "ok", `All engines are ${[...versions][0]}`, null);
  const each = engines.map(({ name, version }) => `${name} ${version}`).join(", ");
  const remedy = "Fine during a rolling update; afterwards run one version on all engines";
  return check(name, "warn", `Engines differ: ${each}`, remedy, versions.size);
}

function checkBuiltins({ engines }: ClusterView): DoctorCheck {
  const name = "cluster built-in workers";
  const known = engines.flatMap(({ name, builtins }) => builtins ? [{ name, builtins }] : []);
  const silent = engines.length - known.length;
  const all = [...new Set(known.flatMap(({ builtins }) => builtins))].sort();
  const missing = all.flatMap((builtin) => {
    const without = known.filter(({ builtins }) => !builtins.includes(builtin));
    const names = without.map(({ name }) => name).join(", ");
    return without.length > 0 ? [`${builtin} not at ${names}`] : [];
  });
  if (missing.length > 0) {
    const remedy =
      "List the same built-in workers in config.yaml of each engine; those of state, " +
      "queues and cron run only where the keeper lists them";
    return check(name, "warn", `Engines differ: ${missing.join("; ")}`, remedy, missing.length);
  }
  const besides = silent === 0 ? "" : `, ${count(silent, "other engine")} did not say`;
  return check(name, "ok", `Engines list the same ${all.length}${besides}`, null, 0);
}

function checkKeeper(view: ClusterView): DoctorCheck {
  const isThere = view.engines.some(({ keeper }) => keeper);
  const remedy = isThere
    ? null
    : "One engine with keeper: true has to reach NATS and the log; the logs of engines say why " +
      "they do not keep the state";
  return check("keeper", isThere ? "ok" : "fail", keeperLine(view), remedy);
}

function checkLog({ log, engines }: ClusterView): DoctorCheck {
  const name = "state log";
  if (log?.problem) {
    const remedy = "Check that the servers of the log run and can be reached";
    return check(name, "fail", log.problem, remedy);
  }
  const late = engines.filter(isLate);
  if (late.length === 0) {
    const message = `All engines follow the log, ${renderBytes(log!.bytes)} since its snapshot`;
    return check(name, "ok", message, null, 0);
  }
  const each = late.map(({ name, log }) => `${name} (${lateText(log!)})`).join(", ");
  const remedy = "Check the load of those engines; until they catch up, a failover takes longer";
  return check(name, "warn", `Engines are behind: ${each}`, remedy, late.length);
}

function isLate({ log }: EngineRow): boolean {
  if (!log) return false;
  return log.problem !== null || (log.behind ?? Infinity) > BEHIND_MAX ||
    (log.seen_ms_ago ?? Infinity) > SEEN_MS_MAX;
}

function lateText({ problem, behind, seen_ms_ago }: NonNullable<EngineRow["log"]>): string {
  if (problem !== null) return problem;
  if (behind === null || seen_ms_ago === null) return "it has nothing yet";
  if (behind > BEHIND_MAX) return `${behind} messages`;
  return `not seen for ${renderShortDuration(seen_ms_ago)}`;
}

function checkDurability({ log }: ClusterView): DoctorCheck {
  const { kind, copies, require_sync, problem, applied } = log!;
  const name = "durability";
  if (problem !== null && applied === null) {
    const message = "The durability is known once the log is open";
    return check(name, "warn", message, "See the check of the state log");
  }
  if (!require_sync) {
    const message = "The log may acknowledge writes that are not on the disk yet";
    const remedy = kind === "postgres"
      ? "Set fsync and synchronous_commit to on, and remove insecure and require_sync: false"
      : "Set sync_interval: always in nats-server, and remove insecure and require_sync: false";
    return check(name, "warn", message, remedy);
  }
  if (copies !== null && copies < COPIES_MIN) {
    const message = "The log has one copy, which is lost with its machine";
    return check(name, "warn", message, "Run three NATS nodes and set copies: 3", copies);
  }
  const where = kind === "postgres" ? "Postgres" : `${copies} nodes of JetStream`;
  return check(name, "ok", `What is acknowledged is on the disk of ${where}`, null, copies);
}

function checkLinks({ engines, link_ends = {} }: ClusterView): DoctorCheck {
  const name = "links";
  const full = engines.filter(({ link }) => (link?.queued_bytes ?? 0) > QUEUED_BYTES_MAX);
  const behind = link_ends["behind"] ?? 0;
  const lost = link_ends["lost"] ?? 0;
  if (full.length > 0) {
    const each = full.map(({ name, link }) => `${name} (${renderBytes(link!.queued_bytes)})`);
    const remedy = "Those engines read too slowly: see their CPU, or move workers away from them";
    return check(name, "warn", `Frames wait for ${each.join(", ")}`, remedy, full.length);
  }
  if (behind + lost === 0) return check(name, "ok", "No link lost a message or was too slow", null);
  const message = `Links have ended since an engine was too slow (${behind}) or a message was ` +
    `lost (${lost})`;
  const remedy = "See slow consumers in /varz of the NATS nodes, and the CPU of the engines";
  return check(name, "warn", message, remedy, behind + lost);
}
