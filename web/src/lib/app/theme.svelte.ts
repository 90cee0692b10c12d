/** Light, dark, or as the system says. The colours are in ui/tokens.css. */

export type Theme = "system" | "light" | "dark";

const KEY = "dodona.theme";

class ThemeChoice {
  chosen = $state<Theme>(stored());
  private system = $state(matchMedia("(prefers-color-scheme: dark)").matches);

  constructor() {
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", (event) => {
      this.system = event.matches;
    });
  }

  get isDark(): boolean {
    return this.chosen === "system" ? this.system : this.chosen === "dark";
  }

  choose(theme: Theme): void {
    this.chosen = theme;
    if (theme === "system") {
      localStorage.removeItem(KEY);
      delete document.documentElement.dataset.theme;
    } else {
      localStorage.setItem(KEY, theme);
      document.documentElement.dataset.theme = theme;
    }
  }

  toggle(): void {
    this.choose(this.isDark ? "light" : "dark");
  }
}

function stored(): Theme {
  const text = localStorage.getItem(KEY);
  return text === "light" || text === "dark" ? text : "system";
}

export const theme = new ThemeChoice();
