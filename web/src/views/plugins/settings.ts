/** What a plugin can be set to, as the fields of a form. */
import type { SettingInfo } from "$lib/rpc/types";
import { type FieldSpec, fields, type Schema } from "$lib/ui/schema";

export function settingField(name: string, setting: SettingInfo): FieldSpec {
  const schema: Schema = { type: TYPES[setting.type], description: setting.description };
  if (setting.min != null) schema.minimum = setting.min;
  if (setting.max != null) schema.maximum = setting.max;
  if (setting.options && setting.options.length > 0) schema.enum = setting.options;
  const [field] = fields({ properties: { [name]: schema }, required: [name] });
  return field as FieldSpec;
}

const TYPES = { integer: "integer", float: "number", string: "string", boolean: "boolean" } as const;

/** What it takes, in words. */
export function takes(setting: SettingInfo): string {
  const { min, max } = setting;
  const range =
    min != null && max != null
      ? `, ${min} to ${max}`
      : min != null
        ? `, at least ${min}`
        : max != null
          ? `, at most ${max}`
          : "";
  return `${setting.type}${range}; usually ${JSON.stringify(setting.default)}`;
}
