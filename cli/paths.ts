/**
 * Paths as people type them.
 *
 * @module
 */

/** The absolute form of a path that is relative to an absolute directory; `..` is resolved. */
export function absolutePath(directory: string, path: string): string {
  const isAbsolute = path.startsWith("/") || /^[A-Za-z]:[\\/]/.test(path);
  const typed = isAbsolute ? path : `${directory}/${path}`;
  const [root = "", ...rest] = withSlashes(typed).split("/");
  const parts: string[] = [];
  for (const part of rest) {
    if (part === "..") parts.pop();
    else if (part !== "" && part !== ".") parts.push(part);
  }
  return `${root}/${parts.join("/")}`;
}

/** Whether a word is a path to a directory rather than the name of a built-in worker. */
export function looksLikePath(word: string): boolean {
  return withSlashes(word).includes("/") || word === "." || word === "..";
}

/** On Windows either slash parts a path; elsewhere a backslash is a character like any other. */
function withSlashes(path: string): string {
  return Deno.build.os === "windows" ? path.replaceAll("\\", "/") : path;
}

/** A word as it would be typed into a shell. */
export function shellWord(word: string): string {
  if (/^[\w@%+=:,./-]+$/.test(word)) return word;
  return `'${word.replaceAll("'", "'\\''")}'`;
}
