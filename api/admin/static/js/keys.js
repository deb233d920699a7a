// The keyboard: go-to, search, rows, palette. Nothing happens while someone types.
import { toggleRow } from "./expansions.js";
import { moveRow, openRow, tickRow } from "./tables.js";
import { nextTimes } from "./times.js";

const GO_MS = 1200;
let goUntil = 0;

const isTyping = (target) => target.matches?.("input:not([type=checkbox]), textarea, select, [contenteditable]");
const show = (id) => document.getElementById(id)?.showModal();

const follow = (selector) => document.querySelector(selector)?.click();

const PLAIN = {
  "/": () => document.querySelector("[data-search]")?.focus(),
  "?": () => show("help"),
  j: () => moveRow(1) || follow("[data-next]"),
  k: () => moveRow(-1) || follow("[data-previous]"),
  "]": () => follow("[data-next]"),
  "[": () => follow("[data-previous]"),
  o: toggleRow,
  x: tickRow,
  p: () => document.querySelector("[data-pause]")?.click(),
  t: nextTimes,
};

const onKey = (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
    event.preventDefault();
    return openPalette();
  }
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target) || document.querySelector("dialog[open]")) return;
  if (Date.now() < goUntil) {
    goUntil = 0;
    const link = document.querySelector(`[data-go="${CSS.escape(event.key)}"]`);
    if (link) return location.assign(link.href);
  }
  if (event.key === "g") goUntil = Date.now() + GO_MS;
  else if (event.key === "Enter" && event.target.matches?.("tr[data-row]")) openRow();
  else if (PLAIN[event.key]) {
    event.preventDefault();
    PLAIN[event.key]();
  }
};

const openPalette = () => {
  const palette = document.getElementById("palette");
  if (!palette || palette.open) return;
  const input = palette.querySelector("input");
  palette.showModal();
  input.select();
  window.htmx.trigger(input, "input");
};

const installPalette = () => {
  const palette = document.getElementById("palette");
  if (!palette) return;
  const input = palette.querySelector("input");
  const options = () => [...palette.querySelectorAll("[role=option]")];
  const mark = (option) => {
    for (const one of options()) one.setAttribute("aria-selected", String(one === option));
    option?.scrollIntoView({ block: "nearest" });
    if (option) input.setAttribute("aria-activedescendant", option.id);
    else input.removeAttribute("aria-activedescendant");
  };
  palette.addEventListener("htmx:after:swap", () => mark(options()[0]));
  document.addEventListener("htmx:after:swap", () => palette.open && mark(options()[0]));
  palette.addEventListener("keydown", (event) => {
    const all = options();
    const at = all.findIndex((option) => option.getAttribute("aria-selected") === "true");
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      mark(all[(at + (event.key === "ArrowDown" ? 1 : -1) + all.length) % all.length]);
    } else if (event.key === "Enter" && at >= 0) {
      event.preventDefault();
      location.assign(all[at].href);
    }
  });
  document.querySelector("[data-palette]")?.addEventListener("click", openPalette);
  document.querySelector("[data-help]")?.addEventListener("click", () => show("help"));
};

export const installKeys = () => {
  document.addEventListener("keydown", onKey);
  installPalette();
};
