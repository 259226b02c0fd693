/**
 * Reads a command line that needs no parser: known options, each with its value, and words.
 *
 * Loading the parser takes 30 ms, and most calls are plain. Whatever is not plain in every part is
 * for the parser, which also has the words for what is wrong; where both read a line, they read
 * the same.
 *
 * @module
 */

/** The options of a command, as they are typed. */
export interface PlainOptions {
  /** Those with a value, such as `--payload`. */
  readonly valued: readonly string[];
  /** Those without, such as `--json`. */
  readonly flags: readonly string[];
}

/** A command line that was plain. */
export interface PlainWords {
  readonly words: readonly string[];
  /** By the name in the parser's spelling: `--timeout-ms` is `timeoutMs`. */
  readonly options: Readonly<Record<string, string | true>>;
}

/** Reads what stands behind a command's name; `undefined` if that needs the parser. */
export function readPlain(
  args: readonly string[],
  { valued, flags }: PlainOptions,
): PlainWords | undefined {
  const words: string[] = [];
  const options: Record<string, string | true> = {};
  for (let i = 0; i < args.length; i++) {
    const arg = args[i]!;
    if (!arg.startsWith("-") || arg === "-") {
      words.push(arg);
      continue;
    }
    const cut = arg.indexOf("=");
    const name = cut < 0 ? arg : arg.slice(0, cut);
    if (flags.includes(name) && cut < 0) options[keyOf(name)] = true;
    else if (!valued.includes(name)) return undefined;
    else if (cut >= 0) options[keyOf(name)] = arg.slice(cut + 1);
    else {
      const value = args[++i];
      if (value === undefined) return undefined;
      options[keyOf(name)] = value;
    }
  }
  return { words, options };
}

/** `--timeout-ms` as `timeoutMs`. */
function keyOf(name: string): string {
  return name.slice(2).replaceAll(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
}
