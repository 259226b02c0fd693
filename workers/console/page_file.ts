/**
 * The built page, carried along as text: it is there wherever this program is.
 *
 * @module
 */
import text from "./dist/console.html" with { type: "text" };

/** HTML with all scripts and styles inside. */
export const consolePage: string = text;
