// Tabs, theme, and the name of the model.
import { getJson } from "./api.js";
import { startChat } from "./chat.js";
import { byId, notice } from "./dom.js";
import { showEngine } from "./engine.js";

const kTabs = ["chat", "engine"];

function show(name) {
  for (const tab of kTabs) {
    const on = tab === name;
    byId(`tab-${tab}`).setAttribute("aria-selected", on);
    byId(`tab-${tab}`).tabIndex = on ? 0 : -1;
    byId(`view-${tab}`).hidden = !on;
  }
  showEngine(name === "engine");
}

function startTabs() {
  for (const [i, tab] of kTabs.entries()) {
    const button = byId(`tab-${tab}`);
    button.addEventListener("click", () => show(tab));
    button.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      const next = kTabs[(i + step + kTabs.length) % kTabs.length];
      show(next);
      byId(`tab-${next}`).focus();
    });
  }
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
}

function startTheme() {
  const wanted = localStorage.getItem("theme");
  setTheme(wanted ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"));
  byId("theme").addEventListener("click", () => {
    const theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    localStorage.setItem("theme", theme);
    setTheme(theme);
  });
}

startTheme();
startTabs();
startChat();
try {
  const models = await getJson("/v1/models");
  byId("model").textContent = models.data[0].id;
} catch (error) {
  notice(error.message);
}
byId("input").focus();
