/** The projects there are, and choosing one. */
import { call, session } from "$lib/rpc";
import type { Project } from "$lib/rpc/types";

class Projects {
  all = $state.raw<Project[]>([]);
  loaded = $state(false);

  get current(): Project | undefined {
    return this.all.find((project) => project.id === session.project);
  }

  /** Loads them; where the chosen one is gone or none was chosen, the latest is taken. */
  async load(): Promise<void> {
    const { projects } = await call("hub.projects", {}, { project: null });
    this.all = projects;
    this.loaded = true;
    if (!this.current) session.choose(projects.at(-1)?.id ?? null);
  }
}

export const projects = new Projects();

/** The last part of a project's folder. */
export function nameOf(project: Project): string {
  return project.root.split("/").filter(Boolean).at(-1) ?? project.root;
}
