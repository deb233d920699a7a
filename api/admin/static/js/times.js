// Every <time data-ms> reads as the operator chose: relative, local or UTC. What it does not show stands in its title.
import { onRefreshed } from "./refresh.js";

const STEPS = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
const MODES = ["relative", "local", "utc"];
const mode = () => (MODES.includes(localStorage.getItem("ms.times")) ? localStorage.getItem("ms.times") : "relative");

const two = (number) => String(number).padStart(2, "0");
const local = (date) =>
  `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
const utc = (date) => `${date.toISOString().slice(0, 19).replace("T", " ")} UTC`;
const relative = (date) => {
  const seconds = Math.round((Date.now() - date.getTime()) / 1000);
  const size = Math.abs(seconds);
  if (size < 1) return "now";
  const [unit, step] = STEPS.find(([, length]) => size >= length);
  const text = `${Math.floor(size / step)} ${unit}`;
  return seconds > 0 ? `${text} ago` : `in ${text}`;
};
const SPELL = { relative, local, utc };

export const spellTime = (ms) => SPELL[mode() === "utc" ? "utc" : "local"](new Date(ms));

const show = () => {
  const spell = SPELL[mode()];
  document.documentElement.dataset.times = mode();
  for (const element of document.querySelectorAll("time[data-ms]")) {
    const date = new Date(Number(element.dataset.ms));
    const text = spell(date);
    if (element.textContent !== text) element.textContent = text;
    element.title = `${local(date)} · ${utc(date)}`;
  }
};

export const nextTimes = () => {
  const select = document.querySelector("select[data-times]");
  if (!select) return;
  select.value = MODES[(MODES.indexOf(mode()) + 1) % MODES.length];
  select.dispatchEvent(new Event("change"));
};

export const installTimes = () => {
  const select = document.querySelector("select[data-times]");
  if (select) {
    select.value = mode();
    select.addEventListener("change", () => {
      localStorage.setItem("ms.times", select.value);
      show();
      document.dispatchEvent(new Event("ms:preferences"));
    });
  }
  show();
  onRefreshed(show);
  setInterval(() => mode() === "relative" && !document.hidden && show(), 1000);
};
