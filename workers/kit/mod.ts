/**
 * The words for shapes: `shape.object({ name: shape.string().min(1) })`.
 *
 * @module
 */
export {
  array,
  extend,
  looseObject,
  type Members,
  object,
  type ObjectOf,
  preprocess,
  record,
  strictObject,
  taggedUnion,
  tuple,
  union,
} from "./containers.ts";
export { type Issue, type IssueCode, ShapeError, type Words } from "./issue.ts";
export {
  boolean,
  custom,
  int,
  literal,
  nothing,
  number,
  oneOf,
  type Options,
  string,
  unknown,
} from "./scalars.ts";
export type { Side } from "./kind.ts";
export { type Any, type Output, type Reading, Shape } from "./shape.ts";
