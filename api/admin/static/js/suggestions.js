// Names of objects that begin as what is typed: `data-suggest="streams"` on an input of a form.
import { callApi } from "./api.js";

const NAMES_MAX = 20;
const WAIT_MS = 150;
let timer;

// A queue or topic with a colon in its name belongs to a route or a source; nothing else is sent to it.
const isChosen = (noun, name) => noun === "streams" || !name.includes(":");

const listOf = (input) => {
  const id = `suggested-${input.name.replaceAll(".", "-")}`;
  let list = document.getElementById(id);
  if (!list) {
    list = document.createElement("datalist");
    list.id = id;
    input.after(list);
    input.setAttribute("list", id);
  }
  return list;
};

const suggest = async (input) => {
  const prefix = input.value;
  try {
    const { told: page } = await callApi("GET", `/v1/${input.dataset.suggest}?limit=${NAMES_MAX}&prefix=${encodeURIComponent(prefix)}`);
    if (input.value !== prefix) return;
    const names = page.items.map(({ name }) => name).filter((name) => isChosen(input.dataset.suggest, name));
    listOf(input).replaceChildren(...names.map((name) => new Option(name, name)));
  } catch {
    // without names the field takes what is typed
  }
};

export const installSuggestions = () => {
  const onTyped = (event) => {
    if (!event.target.dataset?.suggest) return;
    clearTimeout(timer);
    timer = setTimeout(() => suggest(event.target), WAIT_MS);
  };
  document.addEventListener("focusin", onTyped);
  document.addEventListener("input", onTyped);
};
