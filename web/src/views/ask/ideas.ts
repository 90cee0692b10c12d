/** Questions to start with, from what the project has. */
import { call } from "$lib/rpc";
import type { NoteRef } from "$lib/rpc/types";

interface Candidate {
  question: string;
  /** Where the answer is. */
  path: string;
}

const WANTED = 3;
/** Candidates that are checked at most: each check is a search. */
const CHECKED = 8;
/** Notes whose title says nothing about their content. */
const VAGUE = /^(index|notes?|todo|changelog|contents|untitled|license|contributing|code of conduct)$/i;

/**
 * Up to three questions. Each was searched for, and the file it is about was the best match: so the answer is good
 * also without a model, which can only quote.
 */
export async function suggestedQuestions(signal: AbortSignal): Promise<string[]> {
  const candidates = [...(await notes()), ...(await threads())];
  const found = await answered(candidates.slice(0, CHECKED), signal);
  if (found.length >= WANTED) return found.slice(0, WANTED);
  return [...found, ...(await answered(await code(), signal))].slice(0, WANTED);
}

async function answered(candidates: Candidate[], signal: AbortSignal): Promise<string[]> {
  const questions: string[] = [];
  for (const { question, path } of candidates) {
    // Between calls and not in them: an aborted call is journaled as a failed tool.
    if (questions.length === WANTED || signal.aborted) break;
    const { passages } = await call("search.query", { query: question, limit: 1 });
    if (passages[0]?.source.path.startsWith(path)) questions.push(question);
  }
  return questions;
}

async function notes(): Promise<Candidate[]> {
  const list = (await call("vault.list", {})).notes.filter((note) => !VAGUE.test(note.title));
  // The README says what the project is; decisions say why. Short paths are nearer to the top.
  const rank = ({ path }: NoteRef) =>
    (/^readme\.md$/i.test(path) ? 0 : /decision|adr/i.test(path) ? 10 : 20) + path.split("/").length;
  const sorted = list.sort((a, b) => rank(a) - rank(b));
  return sorted.map(({ title, path }) => ({
    question: /^readme\.md$/i.test(path)
      ? `What is ${title}?`
      : `What do we know about ${title.includes(" ") ? `“${title}”` : title}?`,
    path,
  }));
}

async function threads(): Promise<Candidate[]> {
  const { threads: list } = await call("thread.list", {});
  return list
    .slice(0, 2)
    .map(({ thread_id: id }) => ({ question: `What was decided about ${id}?`, path: `thread:${id}` }));
}

async function code(): Promise<Candidate[]> {
  const { text } = await call("code.repo_map", { max_tokens: 400 });
  const found: Candidate[] = [];
  let path = "";
  for (const line of text.split("\n")) {
    if (!/^\s/.test(line)) path = line.replace(/:$/, "").trim();
    const name = /\b(?:class|struct|enum|trait|interface|fn|def|function|func)\s+(\w{4,})/.exec(line)?.[1];
    if (name && !found.some((one) => one.path === path)) found.push({ question: `Where is ${name} defined?`, path });
  }
  return found.slice(0, CHECKED);
}
