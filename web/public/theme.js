// Before anything is drawn, so that a dark page never flashes white. The rest is in src/lib/app/theme.svelte.ts.
const chosen = localStorage.getItem("dodona.theme");
if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
