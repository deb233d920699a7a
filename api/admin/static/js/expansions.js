// Rows that open in place: `data-expand` on a button names the fragment, which is loaded when the row is opened.
import { toast } from "./actions.js";
import { announceRefresh } from "./refresh.js";

const close = (button) => {
  button.setAttribute("aria-expanded", "false");
  const next = button.closest("tr").nextElementSibling;
  if (next?.matches("tr.expansion")) next.remove();
};

const open = async (button) => {
  button.setAttribute("aria-expanded", "true");
  const row = button.closest("tr");
  const answer = await fetch(button.dataset.expand, { credentials: "same-origin" });
  if (!answer.ok) throw new Error(answer.status === 404 ? "It does not exist any more." : `The service returned status ${answer.status}.`);
  const text = await answer.text();
  if (button.getAttribute("aria-expanded") === "false" || !row.isConnected) return; // it was closed meanwhile
  const line = document.createElement("tr");
  line.className = "expansion";
  const cell = line.insertCell();
  cell.colSpan = row.cells.length;
  cell.innerHTML = text; // a fragment of this service, whose templates escape
  row.after(line);
  announceRefresh();
};

const toggle = async (button) => {
  if (button.getAttribute("aria-expanded") === "true") return close(button);
  try {
    await open(button);
  } catch (error) {
    close(button);
    toast(error.message, true);
  }
};

export const toggleRow = () => {
  const button = document.activeElement?.closest("tr[data-row]")?.querySelector("[data-expand]");
  if (button) toggle(button);
};

// Opens all of a page's details; closes them if all are open.
const toggleAll = (selector) => {
  const details = [...document.querySelectorAll(selector)];
  const open = details.some((one) => !one.open);
  for (const one of details) one.open = open;
};

export const installExpansions = () => {
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-expand]");
    if (button) toggle(button);
    const all = event.target.closest("[data-expand-all]");
    if (all) toggleAll(all.dataset.expandAll);
  });
};
