// What a call would do, before it is made: the form's call with "dry_run": true, told as a table, and only then the call itself.
import { bodyOf, fail } from "./actions.js";
import { callApi } from "./api.js";

const count = (value) => Math.round(value).toLocaleString("en");
const plural = (value, one) => `${count(value)} ${one}${value === 1 ? "" : "s"}`;
const size = (value) => {
  let unit = 0;
  while (value >= 1000 && unit < 4) (value /= 1024), (unit += 1);
  return `${+value.toFixed(1)} ${["B", "KiB", "MiB", "GiB", "TiB"][unit]}`;
};

const make = (tag, text = "", className = "") => {
  const element = document.createElement(tag);
  element.textContent = text;
  if (className) element.className = className;
  return element;
};

const table = (heads, rows) => {
  const made = document.createElement("table");
  const top = made.createTHead().insertRow();
  for (const [label, isNumber] of heads) {
    const head = make("th", label, isNumber ? "n" : "");
    head.scope = "col";
    top.append(head);
  }
  const body = made.createTBody();
  for (const cells of rows) {
    const line = body.insertRow();
    cells.forEach((cell, index) => line.append(make("td", cell, heads[index][1] ? "n" : "")));
  }
  return made;
};

// The first commit is where the group starts, so what is between is told where it is known.
const moved = ({ before, after }) => {
  if (before === null) return "from the start";
  if (after === before) return "stays";
  return after < before ? `${plural(before - after, "record")} again` : `${plural(after - before, "record")} skipped`;
};

const SHOW = {
  reset: (told) => {
    const again = told.shards.reduce((sum, { before, after }) => sum + Math.max(0, (before ?? after) - after), 0);
    const skipped = told.shards.reduce((sum, { before, after }) => sum + Math.max(0, after - (before ?? after)), 0);
    const rows = told.shards.map((shard) => [
      String(shard.shard), shard.before === null ? "–" : count(shard.before), count(shard.after), moved(shard) + (shard.expired ? `, ${count(shard.expired)} gone` : ""),
    ]);
    return [
      make("p", `In ${plural(told.shards.length, "shard")}: ${plural(again, "record")} read again, ${plural(skipped, "record")} skipped.`),
      table([["Shard", true], ["From", true], ["To", true], ["That is", false]], rows),
    ];
  },
  resend: (told) => [make("p", `${told.matched === 1 ? "1 delivery" : `${count(told.matched)} deliveries`} would be sent again.`)],
  replay: (told) => {
    const about = told.records.exact ? "" : "about ";
    const line = `It would send ${about}${plural(told.records.count, "record")} of ${told.bytes.exact ? "" : "about "}${size(told.bytes.count)}, and take ${told.seconds < 1 ? "less than a second" : plural(told.seconds, "second")} at the least.`;
    const parts = [make("p", line)];
    if (told.expired) parts.push(make("p", `${plural(told.expired, "record")} of this range have already expired.`));
    parts.push(table([["Shard", true], ["From", true], ["Before", true], ["Offsets", true]], told.shards.map((one) => [String(one.shard), count(one.first), count(one.end), count(one.end - one.first)])));
    return parts;
  },
};

const goButton = (form) => form.querySelector(".buttons button:not([type=button])");

const seen = (form, known) => {
  const confirm = form.querySelector("[data-confirm]");
  if (!confirm) return void (goButton(form).disabled = !known);
  confirm.hidden = !known;
  confirm.querySelector("input").value = "";
  goButton(form).disabled = true;
};

const preview = async (form) => {
  const place = form.querySelector("[data-preview-of]");
  const trouble = form.querySelector(".trouble");
  trouble.hidden = true;
  if (!form.reportValidity()) return;
  try {
    const { told } = await callApi(form.dataset.method, form.getAttribute("action"), { body: { ...bodyOf(form), dry_run: true } });
    place.replaceChildren(...SHOW[place.dataset.previewOf](told));
    seen(form, true);
  } catch (error) {
    fail(form, error);
    seen(form, false);
  }
};

// Of the ways to say where, only the fields of the chosen one count.
const choose = (form) => {
  const chosen = form.querySelector("[data-toward]:checked")?.value;
  for (const field of form.querySelectorAll("[data-with]")) {
    field.disabled = field.dataset.with !== chosen;
    field.required = !field.disabled;
  }
  const offsets = form.querySelector("[data-offsets]");
  if (!offsets) return;
  const offset = form.querySelector("[data-offset]").value;
  offsets.disabled = chosen !== "offsets" || !/^[0-9]+$/.test(offset);
  offsets.value = JSON.stringify({ [form.querySelector("[data-offset-shard]").value]: Number(offset) });
};

document.addEventListener("input", (event) => {
  const form = event.target.closest("form[data-preview]");
  if (!form || event.target.dataset.must) return;
  choose(form);
  seen(form, false);
});
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-preview-now]");
  if (button) preview(button.form);
});
document.addEventListener("ms:open", (event) => {
  const form = event.target.querySelector("form[data-preview]");
  if (form) (choose(form), seen(form, false));
});
