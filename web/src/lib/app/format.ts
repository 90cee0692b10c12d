/** Numbers and times, as people read them. */

export function duration(ms: number): string {
  if (ms < 1) return "<1 ms";
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1)} s`;
  const minutes = Math.floor(ms / 60_000);
  const seconds = Math.floor((ms % 60_000) / 1_000);
  if (minutes < 60) return seconds === 0 ? `${minutes} min` : `${minutes} min ${seconds} s`;
  const hours = Math.floor(minutes / 60);
  return minutes % 60 === 0 ? `${hours} h` : `${hours} h ${minutes % 60} min`;
}

export function count(value: number): string {
  if (value < 1_000) return String(value);
  if (value < 100_000) return `${(value / 1_000).toFixed(1)}k`;
  if (value < 1_000_000) return `${Math.round(value / 1_000)}k`;
  return `${(value / 1_000_000).toFixed(1)}M`;
}

export function bytes(value: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let unit = 0;
  let rest = value;
  while (rest >= 1_000 && unit < units.length - 1) {
    rest /= 1_000;
    unit += 1;
  }
  return `${unit === 0 ? rest : rest.toFixed(1)} ${units[unit]}`;
}

/** Millionths of a dollar. */
export function cost(micros: number): string {
  const dollars = micros / 1_000_000;
  return dollars < 0.01 && dollars > 0 ? `$${dollars.toFixed(4)}` : `$${dollars.toFixed(2)}`;
}

const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto", style: "short" });

export function ago(at: string | Date, now = Date.now()): string {
  const seconds = (new Date(at).getTime() - now) / 1_000;
  const size = Math.abs(seconds);
  if (size < 45) return "just now";
  if (size < 3_600) return relative.format(Math.round(seconds / 60), "minute");
  if (size < 86_400) return relative.format(Math.round(seconds / 3_600), "hour");
  if (size < 86_400 * 30) return relative.format(Math.round(seconds / 86_400), "day");
  return new Date(at).toLocaleDateString("en", { year: "numeric", month: "short", day: "numeric" });
}

export function time(at: string | Date): string {
  return new Date(at).toLocaleString("en", { dateStyle: "medium", timeStyle: "medium" });
}

export function plural(number: number, word: string, many = `${word}s`): string {
  return `${number} ${number === 1 ? word : many}`;
}
