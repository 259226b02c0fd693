/**
 * `engine worker …`: add, remove and look after the workers of a running engine.
 *
 * A client of `engine::supervisor::*` only: config.yaml is edited by the engine, and workers are
 * started by it.
 *
 * @module
 */
import type { Command } from "@commander-js/extra-typings";
import { addLogs } from "./logs.ts";
import { addExec } from "./exec.ts";
import { addWorkerAdd } from "./add.ts";
import { addList, addRemove, addRestart, addStartWorker, addStatus, addStop } from "./run.ts";
import type { Terminal } from "../../terminal.ts";

const EXAMPLES = `
Examples:
  engine worker add ./workers/math-worker      a directory with an engine.worker.yaml
  engine worker add engine-state               a worker that comes with the engine
  engine worker list
  engine worker logs math-worker -f
  engine worker exec math-worker -- ls -l      a command beside it`;

/** Adds `engine worker` and its commands. */
export function addWorker(program: Command, terminal: Terminal): void {
  const group = program.command("worker")
    .description("Add, remove and look after workers")
    .enablePositionalOptions() // Else -- is lost on the way to exec.
    .addHelpText("after", EXAMPLES) as Command;
  addWorkerAdd(group, terminal);
  addRemove(group, terminal);
  addList(group, terminal);
  addStatus(group, terminal);
  addStartWorker(group, terminal);
  addStop(group, terminal);
  addRestart(group, terminal);
  addLogs(group, terminal);
  addExec(group, terminal);
}
