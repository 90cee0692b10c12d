/** Problems as the parts that show code take them. */
import type { RulesProblem } from "$lib/rpc/types";

const words = (problem: RulesProblem): string =>
  problem.hint ? `${problem.message}\n${problem.hint}` : problem.message;

export const codeNotes = (problems: RulesProblem[]) =>
  problems.map((problem) => ({ line: problem.place?.line ?? 1, kind: problem.severity, text: words(problem) }));

export const editorNotes = (problems: RulesProblem[]) =>
  problems.map((problem) => ({
    line: problem.place?.line ?? 1,
    column: problem.place?.column ?? 1,
    kind: problem.severity,
    text: problem.hint ? `${problem.message}, ${problem.hint}` : problem.message,
  }));

/** Those that are about a line of a script; the others stand where the rule names it. */
export const scriptNotes = (problems: RulesProblem[], script: string) =>
  problems.flatMap((problem) => {
    const [, name, line, text] = /^`([^`]+)`: line (\d+): (.*)$/s.exec(problem.message) ?? [];
    return name === script ? [{ line: Number(line), kind: problem.severity, text: text ?? "" }] : [];
  });
