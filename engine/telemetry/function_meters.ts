/**
 * Who is counted: functions and workers, each under one object that is kept as long as it counts.
 *
 * @module
 */
import { METERED_FUNCTIONS_MAX, TRACE_NAME_CHARS_MAX } from "../../sdk/typescript/wire/limits.ts";
import type { FunctionMeter } from "../ports/telemetry.ts";
import { CountingMeter } from "./function_meter.ts";
import { kept } from "./kept_text.ts";
import { Subject } from "./span_links.ts";

/** Name under which calls of all further functions count. */
const OTHER = "(other)";

/** The functions that were ever called. */
export class FunctionMeters {
  /** By namespace, then by id. */
  readonly #subjects = new Map<string, Map<string, Subject>>();
  #count = 0;
  /** Calls of functions without a meter of their own. */
  readonly other: CountingMeter = new CountingMeter("", OTHER);

  /** A function that is offered; counted by itself while there is room. */
  functionOf(namespace: string, function_id: string): Subject {
    const known = this.#subjects.get(namespace)?.get(function_id);
    if (known) return known;
    if (this.#count >= METERED_FUNCTIONS_MAX) return this.#unmetered(namespace, function_id);
    this.#count++;
    const meter = new CountingMeter(namespace, function_id);
    const subject = new Subject(namespace, function_id, meter);
    const subjects = this.#subjects.get(namespace);
    if (subjects) subjects.set(function_id, subject);
    else this.#subjects.set(namespace, new Map([[function_id, subject]]));
    return subject;
  }

  /** A function that perhaps nobody ever offered: only known ones are counted by themselves. */
  strangerOf(namespace: string, function_id: string): Subject {
    return this.#subjects.get(namespace)?.get(function_id) ??
      this.#unmetered(namespace, function_id);
  }

  /** All that have counts of their own. */
  *meters(): Generator<FunctionMeter> {
    for (const subjects of this.#subjects.values()) {
      for (const { meter } of subjects.values()) yield meter;
    }
  }

  #unmetered(namespace: string, function_id: string): Subject {
    const [space, id] = [namespace, function_id].map((text) => kept(text, TRACE_NAME_CHARS_MAX));
    return new Subject(space!, id!, this.other);
  }
}
