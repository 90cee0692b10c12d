/** The views, in the order of the navigation. One line adds one; its code is loaded when it is first shown. */
import type { Component } from "svelte";
import type { IconName } from "$lib/ui/icons";

export interface View {
  /** Its place in the address. */
  id: string;
  title: string;
  icon: IconName;
  /** Pressed after `g`. */
  key: string;
  load: () => Promise<{ default: Component }>;
}

export const views: View[] = [
  { id: "ask", title: "Ask", icon: "ask", key: "a", load: () => import("../../views/ask/Ask.svelte") },
  { id: "trace", title: "Trace", icon: "trace", key: "t", load: () => import("../../views/trace/Trace.svelte") },
  { id: "notes", title: "Notes", icon: "notes", key: "n", load: () => import("../../views/notes/Notes.svelte") },
  {
    id: "threads",
    title: "Threads",
    icon: "threads",
    key: "h",
    load: () => import("../../views/threads/Threads.svelte"),
  },
  { id: "code", title: "Code", icon: "code", key: "c", load: () => import("../../views/code/Code.svelte") },
  { id: "rules", title: "Rules", icon: "rules", key: "r", load: () => import("../../views/rules/Rules.svelte") },
  { id: "logs", title: "Logs", icon: "logs", key: "l", load: () => import("../../views/logs/Logs.svelte") },
  {
    id: "plugins",
    title: "Plugins",
    icon: "plugins",
    key: "p",
    load: () => import("../../views/plugins/Plugins.svelte"),
  },
  { id: "system", title: "System", icon: "system", key: "s", load: () => import("../../views/system/System.svelte") },
];
