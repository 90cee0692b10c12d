import { mount } from "svelte";
import "$lib/ui/tokens.css";
import "$lib/ui/base.css";
import App from "./App.svelte";

const target = document.getElementById("app");
if (!target) throw new Error("index.html has a place for the page");
mount(App, { target });
