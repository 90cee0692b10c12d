/** From a JSON Schema to the fields of a form, and from what was typed back to a value. */

export interface Schema {
  type?: string | string[];
  description?: string;
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema | boolean;
  enum?: unknown[];
  const?: unknown;
  oneOf?: Schema[];
  anyOf?: Schema[];
  default?: unknown;
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
  format?: string;
  $ref?: string;
  $defs?: Record<string, Schema>;
}

export type FieldKind = "text" | "long" | "integer" | "number" | "flag" | "choice" | "lines" | "json";

export interface FieldSpec {
  name: string;
  kind: FieldKind;
  about: string;
  required: boolean;
  options: { value: string; about: string }[];
  schema: Schema;
  initial: unknown;
}

/** Follows references and leaves out `null`, which a form says by leaving a field empty. */
export function resolved(schema: Schema, defs: Record<string, Schema>): Schema {
  if (schema.$ref) {
    const found = defs[schema.$ref.split("/").at(-1) ?? ""] ?? {};
    return { ...resolved(found, defs), ...(schema.description ? { description: schema.description } : {}) };
  }
  if (Array.isArray(schema.type)) {
    const types = schema.type.filter((type) => type !== "null");
    return { ...schema, type: types.length === 1 ? types[0] : types };
  }
  const choices = (schema.anyOf ?? schema.oneOf)?.filter((choice) => choice.type !== "null");
  if (choices?.length === 1 && choices[0])
    return { ...schema, anyOf: undefined, oneOf: undefined, ...resolved(choices[0], defs) };
  return schema;
}

export function fields(schema: Schema, defs: Record<string, Schema> = schema.$defs ?? {}): FieldSpec[] {
  const required = new Set(schema.required ?? []);
  return Object.entries(schema.properties ?? {}).map(([name, given]) => {
    const own = resolved(given, { ...defs, ...given.$defs });
    const options = optionsOf(own);
    return {
      name,
      kind: options.length > 0 ? "choice" : kindOf(own),
      about: given.description ?? own.description ?? "",
      required: required.has(name),
      options,
      schema: own,
      initial: given.default ?? own.default,
    };
  });
}

function optionsOf(schema: Schema): { value: string; about: string }[] {
  if (schema.enum)
    return schema.enum.filter((value) => value !== null).map((value) => ({ value: String(value), about: "" }));
  const choices = schema.oneOf ?? schema.anyOf ?? [];
  const all = choices.every((choice) => typeof choice.const === "string");
  return all ? choices.map((choice) => ({ value: String(choice.const), about: choice.description ?? "" })) : [];
}

function kindOf(schema: Schema): FieldKind {
  switch (schema.type) {
    case "string":
      return (schema.maxLength ?? 0) > 1_000 ? "long" : "text";
    case "integer":
    case "number":
      return schema.type;
    case "boolean":
      return "flag";
    case "array":
      return typeof schema.items === "object" && schema.items.type === "string" ? "lines" : "json";
    default:
      return "json";
  }
}

/** What a field shows for a value. */
export function typed(field: FieldSpec, value: unknown): string | boolean {
  if (field.kind === "flag") return value === true;
  if (value === undefined || value === null) return "";
  if (field.kind === "lines") return (value as string[]).join("\n");
  return field.kind === "json" ? JSON.stringify(value, null, 2) : String(value);
}

export type Read = { value: unknown } | { error: string } | { absent: true };

/** What was typed, as a value; or what is wrong with it. */
export function read(field: FieldSpec, input: string | boolean): Read {
  if (typeof input === "boolean")
    return input || field.required || field.initial === true ? { value: input } : { absent: true };
  if (input.trim() === "") return field.required && field.kind !== "long" ? { error: "This is needed" } : absent(field);
  switch (field.kind) {
    case "integer":
    case "number":
      return number(field, input);
    case "lines":
      return { value: input.split("\n").filter((line) => line.trim() !== "") };
    case "json":
      try {
        return { value: JSON.parse(input) };
      } catch {
        return { error: "This is not valid JSON" };
      }
    default:
      return text(field.schema, input);
  }
}

function absent(field: FieldSpec): Read {
  return field.required ? { error: "This is needed" } : { absent: true };
}

function number(field: FieldSpec, input: string): Read {
  const value = Number(input);
  const { minimum, maximum } = field.schema;
  if (Number.isNaN(value)) return { error: "This is not a number" };
  if (field.kind === "integer" && !Number.isInteger(value)) return { error: "This must be a whole number" };
  if (minimum !== undefined && value < minimum) return { error: `At least ${minimum}` };
  if (maximum !== undefined && value > maximum) return { error: `At most ${maximum}` };
  return { value };
}

function text(schema: Schema, input: string): Read {
  if (schema.minLength !== undefined && input.length < schema.minLength)
    return { error: `At least ${schema.minLength} characters` };
  if (schema.maxLength !== undefined && input.length > schema.maxLength)
    return { error: `At most ${schema.maxLength} characters` };
  return { value: input };
}
