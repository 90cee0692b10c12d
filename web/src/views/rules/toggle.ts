/** Switching a rule on or off; a core rule says why it cannot be. */
import { say } from "$lib/app/say.svelte";
import { call } from "$lib/rpc";
import type { RuleSummary } from "$lib/rpc/types";
import { short } from "./words";

export const CORE = "Core rules apply to all users and cannot be switched off.";

/** Whether it worked; a failure is told. */
export async function toggle(rule: RuleSummary, on: boolean): Promise<boolean> {
  try {
    await call(on ? "rules.enable" : "rules.disable", { rule: rule.rule });
    say.announce(`${short(rule.rule)} is ${on ? "on" : "off"}`);
    return true;
  } catch (thrown) {
    say.failed(thrown);
    return false;
  }
}

export function sayCore(rule: RuleSummary): void {
  say.tell("info", `${short(rule.rule)} is a core rule`, CORE);
}
