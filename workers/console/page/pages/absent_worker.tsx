/**
 * What a page shows while the built-in worker that it is about does not run: what the worker does,
 * why it does not run, and what helps.
 *
 * @module
 */
import type { ComponentChildren, VNode } from "preact";
import type { WorkerStatus } from "../../../../engine/ports/supervision.ts";
import { Code, Empty, type IconName, Link, link, useQuery } from "../kit/mod.ts";
import { SUPERVISED, WORKER_CHANGES } from "./workers/workers.tsx";

/** Takes the place of a page's list. `does` and `shows` are sentences without a full stop. */
export function AbsentWorker({ name, icon, does, shows, children }: {
  /** Such as `engine-queue`. */
  name: string;
  icon: IconName;
  does: string;
  /** What the page shows once it runs. */
  shows: string;
  children?: ComponentChildren;
}): VNode {
  const { status, items } = useQuery<WorkerStatus>(SUPERVISED, WORKER_CHANGES);
  return (
    <Empty icon={icon} title={`${name} does not run`}>
      <p>
        {does}. {status !== "loading" && (
          <Advice
            name={name}
            status={items.find((worker) => worker.name === name)}
          />
        )} {shows}.
      </p>
      {children}
    </Empty>
  );
}

function Advice({ name, status }: { name: string; status: WorkerStatus | undefined }): VNode {
  if (status === undefined) {
    return (
      <>
        Add it with <Code>engine worker add {name}</Code>.
      </>
    );
  }
  if (status.state === "stopped") {
    return (
      <>
        It was stopped; start it with <Code>engine worker start {name}</Code>.
      </>
    );
  }
  if (status.state === "queued") {
    return (
      <>
        It runs at the engine that keeps the state of the{" "}
        <Link to="/cluster">cluster</Link>, and no engine keeps it now.
      </>
    );
  }
  return (
    <>
      Its state is <Link to={link("/workers", name)}>{status.state}</Link>
      {status.reason === null ? "." : `: ${status.reason}.`}
    </>
  );
}
