/**
 * Cron expressions with seconds, in UTC: enough for tests. The engine has time zones, jitter and
 * further signs (`L`, `#`, `W`).
 *
 * @module
 */

/** The values that each field allows. */
export interface Schedule {
  readonly seconds: ReadonlySet<number>;
  readonly minutes: ReadonlySet<number>;
  readonly hours: ReadonlySet<number>;
  readonly days: ReadonlySet<number>;
  readonly months: ReadonlySet<number>;
  readonly weekdays: ReadonlySet<number>;
  /** Either of them is enough when both are restricted. */
  readonly isEitherDay: boolean;
}

const MONTHS = "JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC".split(" ");
const WEEKDAYS = "SUN MON TUE WED THU FRI SAT".split(" ");
const MINUTE_MS = 60_000;
const DAY_MS = 1_440 * MINUTE_MS;
/** A leap day is eight years away at most. */
const DAYS_MAX = 366 * 8 + 2;

/** @throws {Error} For an expression that cannot be read. */
export function parseCron(expression: string): Schedule {
  const fields = expression.trim().split(/\s+/);
  if (fields.length !== 6 && fields.length !== 7) {
    throw new Error(`Cron expression ${JSON.stringify(expression)} needs 6 fields, seconds first`);
  }
  const [seconds, minutes, hours, days, months, weekdays] = fields as [
    ...[string, string, string, string, string, string],
  ];
  return {
    seconds: valuesOf(seconds, 0, 59),
    minutes: valuesOf(minutes, 0, 59),
    hours: valuesOf(hours, 0, 23),
    days: valuesOf(days, 1, 31),
    months: valuesOf(months, 1, 12, MONTHS),
    weekdays: new Set([...valuesOf(weekdays, 0, 7, WEEKDAYS)].map((day) => day % 7)),
    isEitherDay: !isAny(days) && !isAny(weekdays),
  };
}

/** The first time after `afterMs` (milliseconds since 1970); `undefined` if there is none. */
export function nextTime(schedule: Schedule, afterMs: number): number | undefined {
  const start = Math.floor(afterMs / 1_000) * 1_000 + 1_000;
  const firstDay = Math.floor(start / DAY_MS) * DAY_MS;
  for (let day = 0; day < DAYS_MAX; day++) {
    const midnight = firstDay + day * DAY_MS;
    if (!isOnDay(schedule, new Date(midnight))) continue;
    for (let minute = 0; minute < 1_440; minute++) {
      const isWanted = schedule.hours.has(Math.floor(minute / 60)) &&
        schedule.minutes.has(minute % 60);
      if (!isWanted) continue;
      for (const second of schedule.seconds) {
        const time = midnight + minute * MINUTE_MS + second * 1_000;
        if (time >= start) return time;
      }
    }
  }
  return undefined;
}

function isOnDay({ months, days, weekdays, isEitherDay }: Schedule, date: Date): boolean {
  if (!months.has(date.getUTCMonth() + 1)) return false;
  const [isDay, isWeekday] = [days.has(date.getUTCDate()), weekdays.has(date.getUTCDay())];
  return isEitherDay ? isDay || isWeekday : isDay && isWeekday;
}

function isAny(field: string): boolean {
  return field === "*" || field === "?";
}

/** The values of a field, ascending. */
function valuesOf(field: string, least: number, most: number, names: string[] = []): Set<number> {
  const numberOf = (text: string): number => {
    const at = names.indexOf(text.toUpperCase());
    const value = at >= 0 ? at + (names === MONTHS ? 1 : 0) : Number(text);
    if (text !== "" && Number.isInteger(value) && value >= least && value <= most) return value;
    throw new Error(
      `Cron field ${JSON.stringify(field)}: ${JSON.stringify(text)} is not a value of it`,
    );
  };
  const found = new Set<number>();
  for (const part of field.split(",")) {
    const [range = "", step = "1"] = part.split("/");
    const [from = "", to] = isAny(range) ? [`${least}`, `${most}`] : range.split("-");
    const first = numberOf(from);
    const last = to !== undefined ? numberOf(to) : part.includes("/") ? most : first;
    const by = Number(step);
    if (!Number.isInteger(by) || by < 1) {
      throw new Error(`Cron field ${field}: ${step} is not a step`);
    }
    for (let value = first; value <= last; value += by) found.add(value);
  }
  return new Set([...found].sort((a, b) => a - b));
}
