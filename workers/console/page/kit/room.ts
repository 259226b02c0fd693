/**
 * How much room the window has for a drawing.
 *
 * @module
 */
import { useEffect, useState } from "preact/hooks";

/** As in the style: below it, the page is laid out for phones. */
const NARROW = "(max-width: 760px)";
/** What stands around a drawing, in pixels: the side bar; heads, filters and tabs. */
const AROUND = { width: 204, height: 170 };

/** Whether the page is laid out for phones; drawn anew when that changes. */
export function useIsNarrow(): boolean {
  const [isNarrow, setNarrow] = useState(() => matchMedia(NARROW).matches);
  useEffect(() => {
    const media = matchMedia(NARROW);
    const heard = () => setNarrow(media.matches);
    heard();
    media.addEventListener("change", heard);
    return () => media.removeEventListener("change", heard);
  }, []);
  return isNarrow;
}

/** About the room that a drawing has, in pixels. */
export function roomForDrawing(isNarrow: boolean): { width: number; height: number } {
  const width = isNarrow ? innerWidth : innerWidth - AROUND.width;
  return { width: Math.max(200, width), height: Math.max(200, innerHeight - AROUND.height) };
}
