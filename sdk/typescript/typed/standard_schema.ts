/**
 * Standard Schema, the interface that zod, valibot, arktype and others share
 * (https://standardschema.dev): what the SDK uses of it, so that it depends on none of them.
 *
 * A library that also offers `jsonSchema` (StandardJSONSchemaV1) describes its schemas as JSON
 * Schema, which makes `request_format` and `response_format`.
 *
 * @module
 */

/**
 * A schema of any library that follows Standard Schema.
 *
 * @example A schema without a library
 * ```ts
 * import type { StandardSchema } from "engine-sdk";
 *
 * const text: StandardSchema<unknown, string> = {
 *   "~standard": {
 *     version: 1,
 *     vendor: "example",
 *     validate: (value) =>
 *       typeof value === "string" ? { value } : { issues: [{ message: "must be text" }] },
 *   },
 * };
 * console.log(text["~standard"].vendor);
 * ```
 */
export interface StandardSchema<Input = unknown, Output = Input> {
  /** The schema's interface for other libraries. */
  readonly "~standard": {
    /** Version of Standard Schema. */
    readonly version: 1;
    /** Name of the library. */
    readonly vendor: string;
    /** Checks a value and returns it as the program gets it, or what is wrong with it. */
    readonly validate: (
      value: unknown,
    ) => SchemaResult<Output> | Promise<SchemaResult<Output>>;
    /** Carries the types; never there at run time. */
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
    /** The schema as JSON Schema, if the library offers it; throws for what it cannot represent. */
    readonly jsonSchema?: {
      readonly input: (options: { readonly target: "draft-2020-12" }) => object;
      readonly output: (options: { readonly target: "draft-2020-12" }) => object;
    } | undefined;
  };
}

/** The outcome of a check: a value, or the issues. */
export type SchemaResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly SchemaIssue[] };

/** One thing that is wrong with a value. */
export interface SchemaIssue {
  /** What is wrong. */
  readonly message: string;
  /** Where it is: keys from the root, or objects that have one. */
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** The values that a schema accepts. */
export type SchemaInput<S extends StandardSchema> = NonNullable<S["~standard"]["types"]>["input"];

/** The values that a check of a schema returns. */
export type SchemaOutput<S extends StandardSchema> = NonNullable<
  S["~standard"]["types"]
>["output"];
