/**
 * The quickstart with its workers in microVMs, in software emulation where KVM is not to be had.
 *
 * @module
 */
import { checkQuickstart } from "../fakes/programs.ts";
import { vmHere } from "../fakes/vm_project.ts";

Deno.test({
  name: "the quickstart in microVMs shows every step, gets what it expects, and leaves nothing",
  ignore: typeof vmHere === "string",
  fn: () => checkQuickstart("microvm"),
});

Deno.test({
  name: "the quickstart of jobs in microVMs shows every step, and leaves nothing",
  ignore: typeof vmHere === "string",
  fn: () => checkQuickstart("microvm", "jobs"),
});
