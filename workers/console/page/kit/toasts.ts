/**
 * Short notices at the edge of the page: what an action did, or why it failed.
 *
 * @module
 */
import { type ReadonlySignal, type Signal, signal } from "@preact/signals";

/** Toasts shown at once. */
export const TOASTS_MAX = 4;
/** A toast that reports no failure disappears after this time. */
export const TOAST_MS = 5_000;

/** One notice. */
export interface Toast {
  readonly id: number;
  readonly tone: "ok" | "bad" | "info";
  readonly text: string;
  /** Said below, smaller; such as the code of an error. */
  readonly detail?: string;
}

/** See the module. */
export class Toasts {
  readonly #later: (ms: number, run: () => void) => () => void;
  readonly #list: Signal<readonly Toast[]> = signal([]);
  #nextId = 1;

  /** Makes one. */
  constructor(later: (ms: number, run: () => void) => () => void) {
    this.#later = later;
  }

  /** What is shown now, the oldest first. */
  get list(): ReadonlySignal<readonly Toast[]> {
    return this.#list;
  }

  /** Shows a notice. Failures stay until somebody closes them; others go by themselves. */
  show(tone: Toast["tone"], text: string, detail?: string): void {
    const toast = { id: this.#nextId++, tone, text, ...detail !== undefined && { detail } };
    this.#list.value = [...this.#list.value, toast].slice(-TOASTS_MAX);
    if (tone !== "bad") this.#later(TOAST_MS, () => this.close(toast.id));
  }

  /** Shows why something failed, whatever was thrown. */
  fail(what: string, thrown: unknown): void {
    const text = thrown instanceof Error ? thrown.message : String(thrown);
    this.show("bad", what, text);
  }

  /** Takes a notice away. */
  close(id: number): void {
    this.#list.value = this.#list.value.filter((toast) => toast.id !== id);
  }
}
