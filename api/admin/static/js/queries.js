// A query: its text and relations, its rows, and what these include. `?query=` in the address shows one that has run.
import { fail } from "./actions.js";
import { callApi } from "./api.js";

const LOOK_MS = 1000;
const EXACT = { exact: true };
const NUMBER = /^(tinyint|smallint|int|bigint|float|double|decimal)/;
const OVER = new Set(["done", "failed", "cancelled"]);

const form = document.querySelector("form[data-query]");
const relations = form.querySelector("[data-relations]");
const template = form.querySelector("[data-relation-template]");
const cancel = form.querySelector("[data-query-cancel]");
const result = document.querySelector("[data-query-result]");
const summary = result.querySelector("[data-query-summary]");
const rows = result.querySelector("[data-query-rows]");
const positions = result.querySelector("[data-query-positions]");
const waits = JSON.parse(form.dataset.waits);
const numbers = new Intl.NumberFormat("en");

const element = (tag, ...children) => {
  const made = document.createElement(tag);
  made.append(...children);
  return made;
};

// ── The editor ──

const part = (relation, name) => relation.querySelector(`[data-part=${name}]`);

const showColumns = (relation) => {
  const isView = part(relation, "kind").value === "view";
  part(relation, "columns").closest("label").hidden = isView;
};

const showRelations = () => {
  const all = [...relations.children];
  for (const relation of all) {
    relation.querySelector("[data-relation-remove]").parentElement.hidden = all.length === 1;
    showColumns(relation);
  }
};

relations.addEventListener("change", showRelations);
relations.addEventListener("click", (event) => {
  if (!event.target.closest("[data-relation-remove]")) return;
  event.target.closest("[data-relation]").remove();
  showRelations();
});
form.querySelector("[data-relation-add]").addEventListener("click", () => {
  relations.append(template.content.cloneNode(true));
  showRelations();
  part(relations.lastElementChild, "name").focus();
});

const relationOf = (relation) => {
  const kind = part(relation, "kind").value;
  const read = { [kind]: part(relation, "source").value.trim() };
  return kind === "view" ? read : { ...read, columns: part(relation, "columns").value };
};

const bodyOf = () => {
  const from = {};
  for (const relation of relations.children) {
    const name = part(relation, "name").value.trim();
    if (name in from) throw new Error(`Two relations have the name ${name}.`);
    from[name] = relationOf(relation);
  }
  const { sql, rows_max, seconds_max } = form.elements;
  return { sql: sql.value, from, rows_max: rows_max.valueAsNumber, seconds_max: seconds_max.valueAsNumber };
};

// ── The rows ──

const textOf = (value) => (typeof value === "string" ? value : JSON.stringify(value));

const cellOf = (row, { name, type }, tag) => {
  const value = row[name] ?? null;
  const cell = element(tag, value === null ? Object.assign(element("span", "null"), { className: "muted" }) : textOf(value));
  if (tag === "th") cell.scope = "row";
  if (NUMBER.test(type)) cell.className = "n";
  cell.dataset.label = name;
  return cell;
};

const tableOf = (columns, found) => {
  const heads = columns.map(({ name, type }) => Object.assign(element("th", name), { scope: "col", title: type, className: NUMBER.test(type) ? "n" : "" }));
  const lines = found.map((row) => element("tr", ...columns.map((column, nth) => cellOf(row, column, nth ? "td" : "th"))));
  const caption = Object.assign(element("caption", "Rows of the query"), { className: "sr" });
  return element("table", caption, element("thead", element("tr", ...heads)), element("tbody", ...lines));
};

const includedOf = ([name, read], records) => {
  const offsets = Object.entries(read.positions).map(([shard, offset]) => `${shard}:${offset}`);
  const batch = read.batch === null ? "" : `, batch ${read.batch} of revision ${read.revision}`;
  return [element("dt", name), element("dd", `${numbers.format(records[name])} ${read.batch === null ? "records" : "rows"}${batch}; next offsets by shard ${offsets.join(", ") || "–"}`)];
};

const stateOf = (told) => {
  if (told.state === "done") {
    const count = `${numbers.format(told.rows.length)} row${told.rows.length === 1 ? "" : "s"}`;
    return `${told.truncated ? `the first ${count}; there are more` : count}, ${told.seconds} s`;
  }
  return waits[told.waiting_for] ?? told.state;
};

const show = (told) => {
  const isDone = told.state === "done";
  summary.textContent = stateOf(told);
  result.querySelector("[data-query-none]").hidden = true;
  cancel.hidden = OVER.has(told.state);
  rows.hidden = positions.hidden = !isDone;
  if (!isDone) return;
  rows.replaceChildren(tableOf(told.columns, told.rows));
  positions.querySelector("dl").replaceChildren(...Object.entries(told.as_of).flatMap((read) => includedOf(read, told.records)));
};

// ── Its states ──

let followed = "";

const follow = async (told) => {
  followed = told.id;
  const address = new URL(location.href);
  for (const name of ["stream", "view"]) address.searchParams.delete(name);
  address.searchParams.set("query", told.id);
  history.replaceState(history.state, "", address);
  let current = told;
  show(current);
  while (!OVER.has(current.state)) {
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    if (followed !== told.id) return;
    current = (await callApi("GET", `/v1/queries/${encodeURIComponent(told.id)}`, EXACT)).told;
    if (followed === told.id) show(current);
  }
  if (current.state === "failed") throw new Error(current.failure);
};

const attempt = async (button, work) => {
  form.querySelector(".trouble").hidden = true;
  if (button) button.disabled = true;
  try {
    await work();
  } catch (error) {
    summary.textContent = "";
    cancel.hidden = rows.hidden = positions.hidden = true;
    fail(form, error);
  } finally {
    if (button) button.disabled = false;
  }
};

form.addEventListener("submit", (event) => {
  event.preventDefault();
  attempt(form.querySelector("button.primary"), async () => {
    followed = "";
    const body = bodyOf();
    summary.textContent = "running";
    await follow((await callApi("POST", form.getAttribute("action"), { body, ...EXACT })).told);
  });
});

cancel.addEventListener("click", () => attempt(null, async () => {
  await callApi("DELETE", `/v1/queries/${encodeURIComponent(followed)}`);
}));

showRelations();
if (result.dataset.id) attempt(null, async () => follow((await callApi("GET", `/v1/queries/${encodeURIComponent(result.dataset.id)}`, EXACT)).told));
