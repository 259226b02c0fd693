/**
 * Cron expressions with seconds, in a time zone: reading them, and the times at which they fire.
 *
 * croner calculates; it never runs anything. What it says of a wrong expression has no place in the
 * text, so each field is tried alone.
 *
 * @module
 */
import { Cron } from "croner";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import { similarNames } from "../../sdk/typescript/wire/similar.ts";

/** Longest expression, in characters. */
export const EXPRESSION_CHARS_MAX = 256;
/** Expressions that are kept as croner holds them; others are read again when a time is needed. */
export const READ_EXPRESSIONS_MAX = 500;
/** Characters of a text in an error. */
const SHOWN_CHARS_MAX = 80;

/** Fields in their order, with what they accept. */
const FIELDS = [
  "second, 0 to 59",
  "minute, 0 to 59",
  "hour, 0 to 23",
  "day of month, 1 to 31",
  "month, 1 to 12 or JAN to DEC",
  "day of week, 0 to 7 or SUN to SAT",
  "year, 1 to 9999",
] as const;
/** In these, `?` would mean the time at which the expression is read. */
const TIME_FIELDS = 3;
const FIELDS_MIN = 6;
const MODE = "6-or-7-parts";

/** An expression as croner holds it, and its fields with one space between them. */
interface ReadExpression {
  readonly text: string;
  readonly cron: Cron;
  /** The last answer: `next` is the first time after each moment from `after` up to itself. */
  after?: number;
  next?: number | undefined;
  /** For all jobs that have it. */
  expression?: Expression;
}

/**
 * The expressions that were used last, read once for all that have them: croner keeps 80 KB of
 * each, and reading one takes 0.2 ms.
 */
export class ReadExpressions {
  readonly #max: number;
  /** What was used last: thousands of triggers with one expression come one after another. */
  #last: { given: string; timezone: string; read: ReadExpression } | undefined;
  /** The least recently used first. */
  readonly #kept = new Map<string, ReadExpression>();

  constructor(max: number = READ_EXPRESSIONS_MAX) {
    this.#max = max;
  }

  /** Expressions that are kept. */
  get size(): number {
    return this.#kept.size;
  }

  /** @throws {EngineError} `INVALID_ARGUMENTS` with the place of what is wrong. */
  read(text: string, timezone: string): ReadExpression {
    if (text === this.#last?.given && timezone === this.#last.timezone) return this.#last.read;
    const key = `${timezone}\n${text}`;
    const read = this.#kept.get(key) ?? readNow(text, timezone);
    this.#last = { given: text, timezone, read };
    this.#kept.delete(key);
    this.#kept.set(key, read);
    for (const oldest of this.#kept.keys()) {
      if (this.#kept.size <= this.#max) break;
      this.#kept.delete(oldest);
    }
    return read;
  }

  /** As {@linkcode ReadExpressions.read}: one object for all jobs that have it. */
  shared(text: string, timezone: string): Expression {
    const read = this.read(text, timezone);
    return read.expression ??= new Expression(text, timezone, this);
  }
}

function readNow(given: string, timezone: string): ReadExpression {
  checkZone(timezone);
  const text = readFields(given).map(({ field }) => field).join(" ");
  return { text, cron: new Cron(text, { mode: MODE, timezone, paused: true }) };
}

/** A valid expression in a time zone; all times are in milliseconds since 1970. */
export class Expression {
  readonly text: string;
  readonly timezone: string;
  readonly #known: ReadExpressions;
  // For a job whose expression is no longer among those that are kept.
  #after: number | undefined;
  #next: number | undefined;

  /** @throws {EngineError} `INVALID_ARGUMENTS` with the place of what is wrong. */
  constructor(text: string, timezone: string, known: ReadExpressions = new ReadExpressions()) {
    this.timezone = timezone;
    this.#known = known;
    this.text = known.read(text, timezone).text;
  }

  get #cron(): Cron {
    return this.#known.read(this.text, this.timezone).cron;
  }

  /** The first time after `ms`; `undefined` when there is none. */
  next(ms: number): number | undefined {
    if (this.#after !== undefined && this.#after <= ms && ms < (this.#next ?? Infinity)) {
      return this.#next;
    }
    const read = this.#known.read(this.text, this.timezone);
    // Thousands of triggers may share an expression, and ask for the same times.
    if (read.after === undefined || ms < read.after || ms >= (read.next ?? Infinity)) {
      read.next = read.cron.nextRun(new Date(ms))?.getTime();
      read.after = ms;
    }
    this.#after = ms;
    return this.#next = read.next;
  }

  /** The first `count` times after `ms`. */
  nextTimes(ms: number, count: number): number[] {
    return this.#cron.nextRuns(count, new Date(ms)).map((time) => time.getTime());
  }

  /** The last `count` times up to `ms` itself, the oldest first. */
  lastTimes(ms: number, count: number): number[] {
    // croner looks before the second of the time that it is given.
    const times = this.#cron.previousRuns(count, new Date(ms + 1));
    return times.map((time) => time.getTime()).reverse();
  }
}

/**
 * Reads an expression that fires after `now` at least once.
 *
 * @throws {EngineError} `INVALID_ARGUMENTS`.
 */
export function readExpression(
  text: string,
  timezone: string,
  now: number,
  known?: ReadExpressions,
): Expression {
  const expression = known ? known.shared(text, timezone) : new Expression(text, timezone);
  if (expression.next(now) !== undefined) return expression;
  throw invalid(`${quoted(expression.text)} never fires: no time in the future matches it`);
}

/** A field and where it begins in the text, counted from 1. */
interface Field {
  readonly field: string;
  readonly at: number;
}

function readFields(text: string): Field[] {
  if (text.trim() === "") throw new EngineError("INVALID_ARGUMENTS", "Cron expression is required");
  if (text.length > EXPRESSION_CHARS_MAX) {
    const most = `at most ${EXPRESSION_CHARS_MAX} characters, received ${text.length}`;
    throw new EngineError("INVALID_ARGUMENTS", `Cron expression: expected ${most}`);
  }
  const fields = [...text.matchAll(/\S+/g)].map(({ 0: field, index }) => ({
    field,
    at: index + 1,
  }));
  const { length } = fields;
  if (length < FIELDS_MIN || length > FIELDS.length) {
    const hint = length === FIELDS_MIN - 1 ? `; seconds come first: "0 ${text.trim()}"` : "";
    throw invalid(`${quoted(text)} has ${length} fields, expected 6 or 7${hint}`);
  }
  fields.forEach((field, i) => checkField(text, field, i));
  return fields;
}

function checkField(text: string, { field, at }: Field, i: number): void {
  const alone = FIELDS.map((_, each) => each === i ? field : "*").join(" ");
  const isTime = i < TIME_FIELDS && field.includes("?");
  try {
    if (!isTime) return void new Cron(alone, { mode: MODE, timezone: "UTC", paused: true });
  } catch {
    // Said below: croner counts some values from 0.
  }
  const what = `field ${i + 1} (${FIELDS[i]}) at character ${at} is not valid`;
  throw invalid(`${quoted(text)}: ${what}: ${quoted(field)}`);
}

function invalid(problem: string): EngineError {
  return new EngineError("INVALID_ARGUMENTS", `Cron expression ${problem}`);
}

/** @throws {EngineError} `INVALID_ARGUMENTS` with the most similar zone. */
function checkZone(timezone: string): void {
  try {
    new Intl.DateTimeFormat("en", { timeZone: timezone });
    return;
  } catch {
    const nearest = nearestZone(timezone);
    const hint = nearest === undefined ? "such as Europe/Berlin" : `did you mean ${nearest}?`;
    const message = `Time zone ${quoted(timezone)} is unknown; ${hint}`;
    throw new EngineError("INVALID_ARGUMENTS", message);
  }
}

/** The zone with the most similar name; of one without an area, such as `Berlin`, that city. */
function nearestZone(wanted: string): string | undefined {
  const zones = ["UTC", ...Intl.supportedValuesOf("timeZone")];
  const byName = new Map(zones.map((zone) => [zone.slice(zone.lastIndexOf("/") + 1), zone]));
  for (const zone of zones) byName.set(zone, zone);
  const [nearest] = similarNames(wanted.replaceAll(" ", "_"), byName.keys());
  return nearest === undefined ? undefined : byName.get(nearest);
}

function quoted(text: string): string {
  return JSON.stringify(
    text.length > SHOWN_CHARS_MAX ? `${text.slice(0, SHOWN_CHARS_MAX)}…` : text,
  );
}
