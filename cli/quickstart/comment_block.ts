/**
 * Takes the comment signs off a marked block, as a person would in an editor.
 *
 * A block stands between two lines with `NAME: begin` and `NAME: end`, which stay comments.
 *
 * @module
 */

/**
 * The text with every line of the block uncommented.
 *
 * @throws {Error} The markers are missing, or a line of the block is no comment.
 */
export function uncommentBlock(text: string, name: string): string {
  const lines = text.split("\n");
  const begin = lines.findIndex((line) => line.includes(`${name}: begin`));
  const end = lines.findIndex((line, i) => i > begin && isEnd(line, name));
  if (begin < 0 || end < 0) throw new Error(`There is no block between ${name}: begin and end`);
  const block = lines.slice(begin + 1, end).map((line) => {
    const parts = /^(\s*)(?:#|\/\/) ?(.*)$/.exec(line);
    if (!parts) throw new Error(`The block ${name} is uncommented already`);
    return `${parts[1]}${parts[2]}`.trimEnd();
  });
  return [...lines.slice(0, begin + 1), ...block, ...lines.slice(end)].join("\n");
}

function isEnd(line: string, name: string): boolean {
  return line.trim().replace(/^(#|\/\/)\s*/, "") === `${name}: end`;
}
