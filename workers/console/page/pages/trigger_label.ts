/**
 * A trigger in a few words: `GET /orders/:id` says more than its configuration.
 *
 * @module
 */

/** Words for a trigger of a type; for types that nobody here knows, its configuration in short. */
export function triggerLabel(type: string, config: unknown, summary = ""): string {
  const fields = (typeof config === "object" && config !== null ? config : {}) as Record<
    string,
    unknown
  >;
  const text = (name: string): string => typeof fields[name] === "string" ? fields[name] : "";
  if (type === "http" && text("api_path") !== "") {
    const path = text("api_path");
    const method = (text("http_method") || "GET").toUpperCase();
    return `${method} ${path.startsWith("/") ? path : `/${path}`}`;
  }
  if (type === "state" && text("scope") !== "") {
    return text("key") === "" ? text("scope") : `${text("scope")} / ${text("key")}`;
  }
  const known = text("expression") || text("topic") || text("stream_name") || text("queue");
  if (known !== "") return known;
  const short = summary || JSON.stringify(config ?? {});
  return short === "{}" || short === "null" ? "always" : short;
}
