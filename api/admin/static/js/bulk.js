// The same action for each selected row, one call for each: counted first, and the outcome of each is shown in its row.
//
//   <form data-bulk data-method="POST" action="/v1/queues/{name}/purges" data-counts="ready,delayed" data-verb="purge" data-done="{purged} purged">
import { bodyOf, checkWord } from "./actions.js";
import { callApi } from "./api.js";
import { refreshNow } from "./refresh.js";
import { clearSelection } from "./tables.js";

const count = (number) => number.toLocaleString("en");
const plural = (number, word) => `${count(number)} ${word}${number === 1 ? "" : "s"}`;
const fill = (text, values, spell = String) => text.replace(/\{(\w+)\}/g, (_, name) => spell(values[name] ?? ""));
const goButton = (form) => form.querySelector(".buttons button:not([data-close])");

const rowOf = (name) => {
  const row = document.createElement("tr");
  const head = document.createElement("th");
  head.scope = "row";
  head.textContent = name;
  row.append(head);
  row.insertCell().className = "n";
  row.insertCell();
  row.dataset.name = name;
  return row;
};

const say = (row, words, bad = false) => {
  const cell = row.cells[2];
  cell.textContent = words;
  cell.className = bad ? "status-bad" : "";
};

// The exact counts of now, so that what is confirmed is what is there.
const countEach = async (form, rows) => {
  const members = form.dataset.counts.split(",");
  const counts = await Promise.all(rows.map(async (row) => {
    try {
      const { told: stats } = await callApi("GET", `/v1/queues/${encodeURIComponent(row.dataset.name)}/stats`);
      const sum = members.reduce((total, member) => total + stats[member], 0);
      row.cells[1].textContent = count(sum);
      return sum;
    } catch (error) {
      row.cells[1].textContent = "–";
      say(row, error.message, true);
      return 0;
    }
  }));
  return counts.reduce((total, one) => total + one, 0);
};

const prepare = async (form, names) => {
  const rows = names.map(rowOf);
  form.querySelector("[data-bulk-rows]").replaceChildren(...rows);
  const place = form.querySelector("[data-bulk-sum]");
  place.textContent = "Counting…";
  goButton(form).disabled = true;
  const word = form.querySelector("[data-must]");
  if (word) word.dataset.must = form.querySelector("[data-bulk-word]").textContent = `${form.dataset.verb} ${plural(names.length, "queue")}`;
  place.textContent = `${plural(await countEach(form, rows), "message")} in ${plural(names.length, "queue")}`;
  if (word) checkWord(word);
  else goButton(form).disabled = false;
};

const perform = async (form) => {
  const body = form.dataset.body === "json" ? bodyOf(form) : undefined;
  goButton(form).disabled = true;
  for (const row of form.querySelectorAll("[data-bulk-rows] tr")) {
    say(row, "…");
    try {
      const { told: answer } = await callApi(form.dataset.method, fill(form.getAttribute("action"), row.dataset, encodeURIComponent), { body });
      say(row, fill(form.dataset.done, answer));
    } catch (error) {
      say(row, error.message, true);
    }
  }
  form.dataset.performed = "";
};

document.addEventListener("ms:open", (event) => {
  const form = event.target.querySelector("form[data-bulk]");
  const area = event.detail.button.closest("[data-selectable]");
  if (form && area) prepare(form, [...area.querySelectorAll("tbody input[name]:checked")].map((box) => box.value));
});
document.addEventListener("submit", (event) => {
  if (!event.target.matches("[data-bulk]")) return;
  event.preventDefault();
  perform(event.target);
});
document.addEventListener("close", (event) => {
  const form = event.target.querySelector?.("form[data-bulk]");
  if (!form || !("performed" in form.dataset)) return;
  delete form.dataset.performed;
  clearSelection();
  refreshNow();
}, true);
