/**
 * Sends to each link what has changed of what this engine offers.
 *
 * The first change is sent at the end of its tick; more of them wait until ten times as long has
 * passed as the last look took, so that an engine with very many functions is not busy with it.
 *
 * @module
 */
import type { Clock } from "../ports/clock.ts";
import { changes, type Exports, exportsOf, type ExportSources } from "./exports.ts";
import type { Link } from "./link.ts";

/** A look takes at most one part in so many of the time. */
const SHARE = 10;

/** What the pace uses. */
export interface ExportPaceSetup extends ExportSources {
  readonly clock: Clock;
  /** Runs a task at the end of the tick. */
  defer(task: () => void): void;
}

/** Keeps the other engines up to date. */
export class ExportPace {
  readonly #setup: ExportPaceSetup;
  readonly #sent = new Map<Link, Exports>();
  #isDue = false;
  #earliest = -Infinity;
  #cancel = (): void => {};

  constructor(setup: ExportPaceSetup) {
    this.#setup = setup;
  }

  /** A link is new: sends everything. */
  begin(link: Link): void {
    this.#send([link], exportsOf(this.#setup));
  }

  /** A link is over. */
  forget(link: Link): void {
    this.#sent.delete(link);
  }

  /** What is registered has changed; `links` are those that are open then. */
  changed(links: () => readonly Link[]): void {
    if (this.#isDue) return;
    this.#isDue = true;
    const { clock, defer } = this.#setup;
    const wait = this.#earliest - clock.now();
    if (wait > 0) this.#cancel = clock.after(wait, () => this.#look(links()));
    else defer(() => this.#look(links()));
  }

  /** Sends nothing more. */
  stop(): void {
    this.#cancel();
    this.#isDue = true;
  }

  #look(links: readonly Link[]): void {
    const { clock } = this.#setup;
    this.#isDue = false;
    const start = clock.now();
    if (links.length > 0) this.#send(links, exportsOf(this.#setup));
    this.#earliest = clock.now() + (clock.now() - start) * SHARE;
  }

  #send(links: readonly Link[], exports: Exports): void {
    for (const link of links) {
      const before = this.#sent.get(link) ?? NOTHING;
      this.#sent.set(link, exports);
      for (const frame of changes(before, exports)) link.send(frame);
    }
  }
}

const NOTHING: Exports = new Map();
