/** What `plugins.trace` answers; its parts have no schema, so nothing is taken for granted. */

export interface Hook {
  hook: string;
  plugin: string;
  name: string;
  priority: number;
  runs: number;
}

export interface HookRun {
  at: string;
  plugin: string;
  hook: string;
  micros: number;
  edit: string | null;
  effects: number;
  error: string | null;
}

type Row = Record<string, unknown>;

const rows = (values: unknown[]): Row[] =>
  values.filter((value): value is Row => typeof value === "object" && value !== null);
const text = (value: unknown): string =>
  typeof value === "string" ? value : value === null || value === undefined ? "" : JSON.stringify(value);

/** In the order in which they run, each point once. */
export function hooksByPoint(values: unknown[]): { hook: string; hooks: Hook[] }[] {
  const points = new Map<string, Hook[]>();
  for (const row of rows(values)) {
    const hook = {
      hook: text(row.hook),
      plugin: text(row.plugin),
      name: text(row.name),
      priority: Number(row.priority),
      runs: Number(row.runs),
    };
    points.set(hook.hook, [...(points.get(hook.hook) ?? []), hook]);
  }
  return [...points].map(([hook, hooks]) => ({ hook, hooks }));
}

export function runsOf(values: unknown[]): HookRun[] {
  return rows(values).map((row) => ({
    at: text(row.at),
    plugin: text(row.plugin),
    hook: text(row.hook),
    micros: Number(row.micros ?? 0),
    edit: text(row.edit) || null,
    effects: Array.isArray(row.effects) ? row.effects.length : Number(row.effects ?? 0),
    error: text(row.error) || null,
  }));
}
