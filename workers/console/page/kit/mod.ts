/**
 * The API that pages build on.
 *
 * A page asks the engine with {@linkcode useQuery} (kept up to date), {@linkcode useTrigger} (each
 * firing) and `useLive().call()`. It keeps what it shows in the address, with
 * {@linkcode useQueryMember} and {@linkcode link}, and is drawn with the components here, whose
 * styles are in `style/`.
 *
 * @module
 */
export * from "./charts.tsx";
export * from "./context.tsx";
export * from "./controls.tsx";
export * from "./form.ts";
export * from "./form_fields.tsx";
export * from "./form_or_json.ts";
export * from "./format.tsx";
export * from "./graph_canvas.tsx";
export * from "./icons.tsx";
export * from "./json.ts";
export * from "./json_view.tsx";
export * from "./layout.tsx";
export * from "./live.ts";
export * from "./router.ts";
export * from "./schema_check.ts";
export * from "./stack.tsx";
export * from "./table.tsx";
export * from "./virtual_list.tsx";
