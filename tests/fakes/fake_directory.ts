/**
 * A directory that knows what a test tells it: lines and the functions they offer.
 *
 * @module
 */
import type {
  Directory,
  FunctionView,
  TriggerTypeView,
  TriggerView,
  WorkerView,
} from "../../engine/ports/directory.ts";

/** A {@linkcode Directory} without a router. */
export class FakeDirectory implements Directory {
  readonly #offers = new Map<string, readonly string[]>();

  /** From now on the line offers these functions and no others. */
  offer(workerId: string, ...functionIds: string[]): void {
    this.#offers.set(workerId, functionIds);
  }

  /** The line is gone. */
  leave(workerId: string): void {
    this.#offers.delete(workerId);
  }

  functions(): FunctionView[] {
    const ids = new Set([...this.#offers.values()].flat());
    return [...ids].map((function_id) => {
      const worker_ids = [...this.#offers.keys()]
        .filter((id) => this.#offers.get(id)!.includes(function_id));
      return {
        function_id,
        namespace: "default",
        worker_id: worker_ids.at(-1)!,
        worker_name: "fake",
        internal: false,
        builtin: false,
        worker_ids,
      };
    });
  }

  function(_namespace: string, function_id: string): FunctionView | undefined {
    return this.functions().find((view) => view.function_id === function_id);
  }

  triggerTypes(): TriggerTypeView[] {
    return [];
  }

  triggerType(): TriggerTypeView | undefined {
    return undefined;
  }

  triggers(): TriggerView[] {
    return [];
  }

  trigger(): TriggerView | undefined {
    return undefined;
  }

  workers(): WorkerView[] {
    return [...this.#offers.keys()].map((id) => this.worker(id)!);
  }

  worker(id: string): WorkerView | undefined {
    const offered = this.#offers.get(id);
    if (!offered) return undefined;
    return {
      id,
      name: "fake",
      namespace: null,
      description: null,
      version: null,
      runtime: null,
      os: null,
      pid: null,
      isolation: null,
      launch_id: null,
      status: "connected",
      announced: true,
      builtin: false,
      operator: false,
      function_count: offered.length,
      trigger_count: 0,
      connected_at_ms: 0,
      active_invocations: 0,
      queued_bytes: 0,
      ip_address: null,
    };
  }
}
