// Turns docs/reference/openrpc.json into src/lib/rpc/types.ts. With `--check` it only compares.
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const SOURCE = fileURLToPath(new URL("../../docs/reference/openrpc.json", import.meta.url));
const TARGET = fileURLToPath(new URL("../src/lib/rpc/types.ts", import.meta.url));

const HEAD = `// Made by \`npm run types\` from docs/reference/openrpc.json. Do not edit.
/* eslint-disable */
`;

/** A schema with a name, and the definitions it may refer to. */
function named(methods) {
  const found = [];
  for (const method of methods) {
    const parts = [[method.result?.schema, `${method.result?.name ?? "Result"}`]];
    for (const param of method.params) parts.push([param.schema, null]);
    for (const [schema, name] of parts) {
      const defs = schema?.$defs ?? {};
      for (const [key, value] of Object.entries(defs))
        found.push({ method: method.name, name: key, schema: value, defs });
      if (name && schema?.type === "object" && schema.properties) {
        const { $defs: _, $schema: __, ...own } = schema;
        found.push({ method: method.name, name, schema: own, defs });
      }
    }
  }
  return found;
}

/** Everything a schema says, with what it refers to: equal texts mean equal types. */
function whole(schema, defs, seen = new Set()) {
  const text = JSON.stringify(schema, (key, value) => (key === "description" || key === "title" ? undefined : value));
  const parts = [text];
  for (const [, name] of (text ?? "").matchAll(/"#\/\$defs\/([^"]+)"/g)) {
    if (seen.has(name) || !(name in defs)) continue;
    seen.add(name);
    parts.push(`${name}=${whole(defs[name], defs, seen)}`);
  }
  return parts.join("\n");
}

const upper = (text) => text.replace(/(^|[._-])([a-z])/g, (_, __, letter) => letter.toUpperCase());

/** Gives every schema a name that no other one has; the shortest that does. */
function naming(entries) {
  const forms = new Map();
  for (const entry of entries) {
    entry.text = whole(entry.schema, entry.defs);
    if (!forms.has(entry.name)) forms.set(entry.name, new Map());
    const texts = forms.get(entry.name);
    if (!texts.has(entry.text)) texts.set(entry.text, []);
    texts.get(entry.text).push(entry.method);
  }
  return (name, text) => {
    const texts = forms.get(name);
    if (texts.size === 1) return name;
    const plugin = (method) => method.split(".")[0];
    const mine = texts.get(text)[0];
    const sharing = [...texts.values()].filter((methods) => methods.some((method) => plugin(method) === plugin(mine)));
    return sharing.length === 1 ? upper(plugin(mine)) + name : upper(mine) + name;
  };
}

function type(schema, refer, depth = 0) {
  if (schema === true || schema === undefined || schema === null) return "unknown";
  if (schema.$ref) return refer(schema.$ref.split("/").pop());
  if ("const" in schema) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  const choices = schema.oneOf ?? schema.anyOf;
  if (choices) return [...new Set(choices.map((choice) => type(choice, refer, depth)))].join(" | ");
  if (schema.allOf) return schema.allOf.map((part) => type(part, refer, depth)).join(" & ");
  if (Array.isArray(schema.type)) {
    return schema.type.map((one) => type({ ...schema, type: one }, refer, depth)).join(" | ");
  }
  switch (schema.type) {
    case "string":
      return "string";
    case "integer":
    case "number":
      return "number";
    case "boolean":
      return "boolean";
    case "null":
      return "null";
    case "array": {
      if (schema.prefixItems) return `[${schema.prefixItems.map((item) => type(item, refer, depth)).join(", ")}]`;
      const item = type(schema.items, refer, depth);
      return /[|&]/.test(item) ? `(${item})[]` : `${item}[]`;
    }
    case "object":
      return object(schema, refer, depth);
    default:
      return "unknown";
  }
}

function object(schema, refer, depth) {
  const pad = "  ".repeat(depth + 1);
  const required = new Set(schema.required ?? []);
  const lines = Object.entries(schema.properties ?? {}).map(([name, value]) => {
    const key = /^[A-Za-z_]\w*$/.test(name) ? name : JSON.stringify(name);
    return `${comment(value.description, pad)}${pad}${key}${required.has(name) ? "" : "?"}: ${type(value, refer, depth + 1)};`;
  });
  if (lines.length === 0) {
    const rest = schema.additionalProperties;
    if (rest && rest !== true) return `Record<string, ${type(rest, refer, depth)}>`;
    return rest === false ? "Record<string, never>" : "Record<string, unknown>";
  }
  return `{\n${lines.join("\n")}\n${"  ".repeat(depth)}}`;
}

function comment(text, pad) {
  if (!text) return "";
  return `${pad}/** ${text.replaceAll("*/", "*\\/").replaceAll("\n", `\n${pad} * `)} */\n`;
}

function generate(document) {
  const entries = named(document.methods);
  const name = naming(entries);
  const referring = (defs) => (ref) => (defs[ref] === undefined ? "unknown" : name(ref, whole(defs[ref], defs)));
  const types = new Map();
  for (const entry of entries) {
    const own = name(entry.name, entry.text);
    if (types.has(own)) continue;
    const body = type(entry.schema, referring(entry.defs));
    const about = comment(entry.schema.description, "");
    types.set(own, `${about}export type ${own} = ${body};`);
  }
  const methods = document.methods.map((method) => {
    const params = method.params.map((param) => {
      const refer = referring(param.schema?.$defs ?? {});
      const about = comment(param.schema?.description, "      ");
      return `${about}      ${param.name}${param.required ? "" : "?"}: ${type(param.schema, refer, 3)};`;
    });
    const result = method.result?.schema;
    const defs = result?.$defs ?? {};
    const { $defs: _, $schema: __, ...own } = result ?? {};
    const shape =
      result?.type === "object" && result.properties
        ? name(method.result.name, whole(own, defs))
        : type(own, referring(defs), 2);
    const input = params.length > 0 ? `{\n${params.join("\n")}\n    }` : "Record<string, never>";
    return `${comment(method.summary, "  ")}  "${method.name}": {\n    params: ${input};\n    result: ${shape};\n    kind: "${method["x-kind"]}";\n  };`;
  });
  const sorted = [...types.entries()].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, text]) => text);
  return `${HEAD}\n${sorted.join("\n\n")}\n\n/** Every method of the server. */\nexport interface Methods {\n${methods.join("\n")}\n}\n`;
}

const made = generate(JSON.parse(readFileSync(SOURCE, "utf8")));
if (process.argv.includes("--check")) {
  if (readFileSync(TARGET, "utf8") !== made) {
    console.error("src/lib/rpc/types.ts is not what docs/reference/openrpc.json says: run `npm run types`");
    process.exit(1);
  }
} else {
  writeFileSync(TARGET, made);
}
