/**
 * The kit's door: everything a page builds on.
 *
 * A page asks the engine with {@linkcode useQuery} (kept up to date), {@linkcode useTrigger} (each
 * firing) and `useLive().call()`; it keeps what it shows in the address with
 * {@linkcode useQueryMember} and {@linkcode link}; and it is drawn with the components here, whose
 * looks are in `style/`.
 *
 * @module
 */
export * from "./badge.tsx";
export * from "./chart.tsx";
export type { Series } from "./chart_options.ts";
export * from "./controls.tsx";
export * from "./copy_button.tsx";
export * from "./format.ts";
export * from "./graph_canvas.tsx";
export * from "./icons.tsx";
export * from "./json_edit.tsx";
export * from "./json_view.tsx";
export * from "./layout.tsx";
export * from "./link.tsx";
export * from "./live.ts";
export * from "./page_list.ts";
export * from "./parse_json.ts";
export * from "./row_order.ts";
export * from "./router.ts";
export * from "./shell.ts";
export * from "./sparkline.tsx";
export * from "./table.tsx";
export * from "./times.tsx";
export * from "./virtual_list.tsx";
