// Rows that are walked, and ticked: `data-row` on each, a checkbox in it where it can be ticked.
import { onRefreshed } from "./refresh.js";

const rows = () => [...document.querySelectorAll("tr[data-row]")];
const boxes = (table) => [...table.querySelectorAll("tbody input[type=checkbox][name]")];

export const moveRow = (step) => {
  const all = rows();
  if (!all.length) return false;
  const at = all.indexOf(document.activeElement?.closest("tr[data-row]"));
  const next = all[Math.max(0, Math.min(all.length - 1, at < 0 ? 0 : at + step))];
  next.tabIndex = -1;
  next.focus();
  next.scrollIntoView({ block: "nearest" });
  return true;
};
export const openRow = () => document.activeElement?.closest("tr[data-row]")?.querySelector("a")?.click();
export const tickRow = () => document.activeElement?.closest("tr[data-row]")?.querySelector("input[type=checkbox]")?.click();

const chosen = new Set();

const show = () => {
  for (const area of document.querySelectorAll("[data-selectable]")) {
    const all = boxes(area);
    for (const box of all) box.checked = chosen.has(box.value);
    const ticked = all.filter((box) => box.checked);
    area.classList.toggle("has-selection", ticked.length > 0);
    for (const place of area.querySelectorAll("[data-selected]")) place.textContent = String(ticked.length);
    for (const box of all) box.closest("tr").setAttribute("aria-selected", String(box.checked));
    const head = area.querySelector("thead input[type=checkbox]");
    if (head) {
      head.checked = all.length > 0 && ticked.length === all.length;
      head.indeterminate = ticked.length > 0 && !head.checked;
    }
  }
};

const selectedIn = (area) => boxes(area).filter((box) => box.checked).map((box) => box.value);

export const clearSelection = () => {
  chosen.clear();
  show();
};

// A table that is wider than its place is scrolled, also from the keyboard.
const reach = () => {
  for (const wrap of document.querySelectorAll(".table-wrap:not([tabindex])")) if (wrap.scrollWidth > wrap.clientWidth) wrap.tabIndex = 0;
};

// On a narrow screen a row is a card, in which each cell has its column's head beside it; none of which is only for readers.
const labelOf = (head) => (head.querySelector(".sr, input") ? "" : (head.querySelector("a") ?? head).textContent.trim().replace(/^[↑↓]|[↑↓]$/g, ""));

export const labelCells = () => {
  for (const table of document.querySelectorAll(".table-wrap > table")) {
    const labels = [...(table.tHead?.rows[0]?.cells ?? [])].map(labelOf);
    for (const row of table.tBodies[0]?.rows ?? []) {
      if (row.cells.length !== labels.length) continue;
      for (const [index, cell] of [...row.cells].entries()) if (cell.dataset.label !== labels[index]) cell.dataset.label = labels[index];
    }
  }
};

export const installTables = () => {
  labelCells();
  onRefreshed(labelCells);
  reach();
  addEventListener("resize", reach);
  onRefreshed(reach);
  document.addEventListener("change", (event) => {
    const box = event.target;
    const area = box.closest?.("[data-selectable]");
    if (!area || box.type !== "checkbox") return;
    const meant = box.closest("thead") ? boxes(area) : [box];
    for (const one of meant) chosen[box.checked ? "add" : "delete"](one.value);
    show();
  });
  // A dialog that is about the ticked rows carries them along as hidden fields.
  document.addEventListener("ms:open", (event) => {
    const holder = event.target.querySelector("[data-selection]");
    if (!holder) return;
    const area = event.detail.button.closest("[data-selectable]");
    const picked = area ? selectedIn(area) : [];
    holder.replaceChildren(...picked.map((value) => {
      const field = document.createElement("input");
      Object.assign(field, { type: "hidden", name: holder.dataset.selection, value });
      field.dataset.type = "list";
      return field;
    }));
    for (const place of event.target.querySelectorAll("[data-selected]")) place.textContent = String(picked.length);
  });
  onRefreshed(show);
};
