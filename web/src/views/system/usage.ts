/** What was used, day by day, with the days on which nothing was. */
import type { UsageRow } from "$lib/rpc/types";

export interface Day {
  day: string;
  requests: number;
  input: number;
  output: number;
  cost: number | null;
}

const iso = (at: Date) => at.toISOString().slice(0, 10);

export function days(rows: UsageRow[], length: number, today = new Date()): Day[] {
  const known = new Map(rows.map((row) => [row.key.slice(0, 10), row]));
  return Array.from({ length }, (_, i) => {
    const at = new Date(today);
    at.setUTCDate(at.getUTCDate() - (length - 1 - i));
    const row = known.get(iso(at));
    return {
      day: iso(at),
      requests: row?.requests ?? 0,
      input: row?.input_tokens ?? 0,
      output: row?.output_tokens ?? 0,
      cost: row?.cost_micros ?? null,
    };
  });
}

/** The first moment of the first day. */
export function since(length: number, today = new Date()): string {
  const at = new Date(today);
  at.setUTCDate(at.getUTCDate() - (length - 1));
  return `${iso(at)}T00:00:00Z`;
}

/** 16 Nov. */
export const short = (day: string) =>
  new Date(`${day}T00:00:00Z`).toLocaleDateString("en", { day: "numeric", month: "short", timeZone: "UTC" });
