/** Round numbers from nothing to above the largest value: 0, 50, 100, 150. */
export function ticks(most: number, wanted = 4): number[] {
  if (most <= 0) return [0, 1];
  const rough = most / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough) ?? 10 * power;
  const found = [];
  for (let i = 0; i <= Math.ceil(most / step); i++) found.push(Number((i * step).toPrecision(12)));
  return found;
}
