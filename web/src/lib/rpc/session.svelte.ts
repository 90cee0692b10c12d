/** Whether this browser is signed in, whether the server is there, and which project is shown. */

export type Why = "none" | "link" | "expired" | "revoked";

class Session {
  /** `null` while signed in. */
  signedOut = $state<Why | null>(null);
  /** Whether the connection for streams stands. */
  online = $state(true);
  project = $state<string | null>(localStorage.getItem("dodona.project"));

  choose(project: string | null): void {
    this.project = project;
    if (project === null) localStorage.removeItem("dodona.project");
    else localStorage.setItem("dodona.project", project);
  }

  /** Whether it was ever signed in tells a session that has ended from one that never began. */
  signIn(): void {
    this.signedOut = null;
    localStorage.setItem("dodona.signed-in", "yes");
  }

  signOut(message: string): void {
    const before = localStorage.getItem("dodona.signed-in") !== null;
    if (message.includes("expired")) this.signedOut = "expired";
    else this.signedOut = before ? "revoked" : "none";
  }
}

export const session = new Session();
