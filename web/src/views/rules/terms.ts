/** The terms of a condition as the nodes of a tree. */

interface Term {
  text: string;
  value?: unknown;
  error?: string;
  reached?: boolean;
  times?: number;
  terms?: Term[];
}

export interface TermNode {
  id: string;
  text: string;
  outcome: "yes" | "no" | "value" | "error" | "unreached";
  shown: string;
  times: number;
  children?: TermNode[];
}

const LONGEST = 160;

export function termNodes(terms: unknown, id = "t"): TermNode[] {
  if (typeof terms !== "object" || terms === null || !("text" in terms)) return [];
  const term = terms as Term;
  const children = (term.terms ?? []).flatMap((inner, i) => termNodes(inner, `${id}.${i}`));
  const node: TermNode = { id, text: term.text.replace(/\s+/g, " "), times: term.times ?? 1, ...outcome(term) };
  return [children.length > 0 ? { ...node, children } : node];
}

function outcome(term: Term): Pick<TermNode, "outcome" | "shown"> {
  if (term.reached === false) return { outcome: "unreached", shown: "not reached" };
  if (term.error !== undefined) return { outcome: "error", shown: term.error };
  if (term.value === true) return { outcome: "yes", shown: "True" };
  if (term.value === false) return { outcome: "no", shown: "False" };
  if (term.value === null) return { outcome: "value", shown: "None" };
  const text = JSON.stringify(term.value) ?? "";
  return { outcome: "value", shown: text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text };
}
